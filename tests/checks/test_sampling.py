"""Lab 05's reference against outside oracles: transformers' logits processors, and numpy for the inverse CDF.

Kept sets and ids are compared exactly, logits to float32's rounding. transformers keeps ties that our rule cuts (of equal
logits the smaller id stays), so the oracles see logits that are all different; ties have tests of their own.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import strategies as st
from transformers.generation import logits_process as hf

from llmcourse import SamplingParams, checks, given
from llmcourse.checks.sampling_inputs import FALSE_FAILURES, chi_square, chi_square_bound, fits
from llmcourse.errors import NonFiniteLogits
from llmcourse.ops import sampling as engine
from llmcourse.workbook.examine import examine

V = 997
SEEDS = st.integers(0, 2**32)
NO_IDS = torch.zeros(1, 0, dtype=torch.long)


@pytest.fixture(scope="module")
def lab():
    """The lab's own solutions."""
    return given.answer("05")


def row(seed: int, spread: float = 3.0, size: int = V) -> torch.Tensor:
    """Logits [size], all different."""
    logits = torch.randn(size, generator=torch.Generator().manual_seed(seed)) * spread
    return logits if len(logits.unique()) == size else row(seed + 1, spread, size)


def kept(logits):
    return (logits > -math.inf).nonzero().flatten().tolist()


@drawn(SEEDS, st.lists(st.integers(0, V - 1), min_size=1, max_size=60), st.floats(0.3, 3))
def test_the_penalty_is_that_of_transformers(seed, previous, penalty):
    logits = row(seed)
    want = hf.RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([previous]), logits[None].clone())[0]
    torch.testing.assert_close(given.answer("05").repetition_penalty(logits, previous, penalty), want)


@drawn(SEEDS, st.floats(0.05, 20))
def test_temperature_gives_the_probabilities_of_transformers(seed, temperature):
    logits = row(seed)
    want = hf.TemperatureLogitsWarper(temperature)(NO_IDS, logits[None])[0].softmax(-1)
    got = given.answer("05").apply_temperature(logits, temperature).softmax(-1)
    torch.testing.assert_close(got, want, rtol=2e-5, atol=1e-7)


@drawn(SEEDS, st.integers(1, V + 50))
def test_top_k_keeps_what_transformers_keeps(seed, k):
    logits = row(seed)
    torch.testing.assert_close(given.answer("05").top_k_filter(logits, k), hf.TopKLogitsWarper(k)(NO_IDS, logits[None])[0])


@drawn(SEEDS, st.floats(0.01, 0.99), st.sampled_from([0.3, 2.0, 6.0]))
def test_top_p_keeps_what_transformers_keeps(seed, p, spread):
    """In float64: transformers adds up from the least likely token, and float32's rounding could decide."""
    logits = row(seed, spread).double()
    assert kept(given.answer("05").top_p_filter(logits, p)) == kept(hf.TopPLogitsWarper(p)(NO_IDS, logits[None])[0])


@drawn(SEEDS, st.floats(0, 1), st.sampled_from([0.3, 2.0, 6.0]))
def test_min_p_keeps_what_transformers_keeps(seed, min_p, spread):
    logits = row(seed, spread).double()
    assert kept(given.answer("05").min_p_filter(logits, min_p)) == kept(hf.MinPLogitsWarper(min_p)(NO_IDS, logits[None])[0])


@drawn(SEEDS, st.floats(0, 1, exclude_max=True), st.sampled_from([1, 7, 40, V]))
def test_the_draw_is_numpys_inverse_of_the_cumulative_distribution(seed, u, k):
    logits = row(seed)
    cut = hf.TopKLogitsWarper(k)(NO_IDS, logits[None])[0].double().numpy()
    weights = np.exp(cut - cut.max())
    cumulative = np.cumsum(weights / weights.sum())
    want = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
    got = given.answer("05").sample(logits, SamplingParams(top_k=k), u, [])
    assert got == want or min(abs(cumulative - u)) < 1e-12  # nearer than rounding to a boundary


@drawn(SEEDS, st.floats(0.2, 3), st.integers(0, 60), st.floats(0, 1), st.floats(0, 1), st.floats(0.7, 2))
def test_all_knobs_together_draw_from_what_transformers_warpers_leave(seed, temperature, k, p, min_p, penalty):
    logits, previous = row(seed, size=61), [3, 5, 5, 60]
    left = hf.RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([previous]), logits.double()[None])
    left = hf.TemperatureLogitsWarper(temperature)(NO_IDS, left)
    left = hf.TopKLogitsWarper(k)(NO_IDS, left) if k else left
    left = hf.TopPLogitsWarper(p)(NO_IDS, left) if p < 1 else left
    left = hf.MinPLogitsWarper(min_p)(NO_IDS, left)[0]
    params = SamplingParams(temperature=temperature, top_k=k, top_p=p, min_p=min_p, repetition_penalty=penalty)
    luck = np.linspace(0, 1, 500, endpoint=False).tolist()
    wide = {given.answer("05").sample(logits.double(), params, u, previous) for u in luck}
    likely = {token for token in kept(left) if left.softmax(-1)[token] > 1 / 400}
    assert likely <= wide <= set(kept(left))  # 500 numbers u, evenly spread, miss no token of more than 1/500


@pytest.mark.parametrize("params", [
    SamplingParams(temperature=1.3, top_p=0.9), SamplingParams(top_k=5), SamplingParams(temperature=0),
    SamplingParams(temperature=0.6, min_p=0.1, repetition_penalty=1.4), SamplingParams(top_p=0.0),
    SamplingParams(top_k=5000),
], ids=range(6))  # fmt: skip
def test_the_reference_draws_the_engines_ids(lab, params):
    for seed in range(40):
        logits, u = row(seed), ((seed * 37) % 101) / 101
        assert lab.sample(logits, params, u, [1, 2, seed]) == engine.sample(logits, params, u, [1, 2, seed])


@pytest.mark.parametrize("filtered", [
    lambda part, logits: part.top_k_filter(logits, 5), lambda part, logits: part.top_p_filter(logits, 0.4),
    lambda part, logits: part.top_p_filter(logits, 0.0), lambda part, logits: part.min_p_filter(logits, 1.0),
], ids=["top-k", "top-p", "top-p 0", "min-p 1"])  # fmt: skip
def test_ties_are_cut_as_in_the_engine(lab, filtered):
    logits = torch.tensor([0.0, 1.0, 1.0, -2.0, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0])
    assert kept(filtered(lab, logits)) == kept(filtered(engine, logits))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0, 1])
def test_a_broken_row_is_the_engines_error_with_a_message(lab, bad, temperature):
    logits = row(1)
    logits[5] = bad
    with pytest.raises(NonFiniteLogits, match="largest of 997 logits"):
        lab.sample(logits, SamplingParams(temperature=temperature), 0.5, [])


@pytest.mark.parametrize("degrees, rate, quantile", [
    (1, 0.05, 3.841), (1, 0.001, 10.828), (5, 0.05, 11.070), (5, 0.001, 20.515), (10, 0.01, 23.209), (30, 0.05, 43.773),
])  # fmt: skip
def test_the_chi_square_bound_is_that_of_printed_tables(degrees, rate, quantile):
    """Oracle: Abramowitz and Stegun, Handbook of Mathematical Functions, table 26.8."""
    assert chi_square_bound(degrees, rate) == pytest.approx(quantile, abs=6e-4)


def test_a_fair_sampler_fails_the_distribution_test_a_few_times_in_a_million():
    """Counted over two million fair samples of 300 draws, at the least even distribution that the probe may draw."""
    n, p = 300, np.array([0.046, *[0.1908] * 5])
    counts = np.random.default_rng(1).multinomial(n, p, size=2_000_000)
    statistic = ((counts - n * p) ** 2 / (n * p)).sum(axis=1)
    rate = (statistic > chi_square_bound(5)).mean()
    assert FALSE_FAILURES / 5 < rate < 10 * FALSE_FAILURES


def test_the_distribution_test_notices_a_token_that_comes_too_often_and_one_that_must_not_come():
    expected = torch.tensor([0.5, 0.25, 0.25, 0.0])
    fair, unfair, impossible = [0, 1, 0, 2] * 75, [0, 1, 1, 2] * 75, [0, 1, 0, 2] * 75 + [3]
    assert [fits(one, expected)["follows the distribution"] for one in (fair, unfair, impossible)] == [True, False, False]
    assert chi_square(unfair, expected) == 75**2 / 150 + 75**2 / 75  # counts 75, 150, 75 instead of 150, 75, 75


def penalty_in_a_loop(logits, previous_ids, penalty):
    penalised = logits.clone()
    for token in set(previous_ids):
        penalised[token] = penalised[token] * penalty if penalised[token] < 0 else penalised[token] / penalty
    return penalised


def temperature_in_float64(logits, temperature):
    wide = logits.double()
    return ((wide - wide.max()) / temperature).to(logits.dtype)


def top_k_by_a_key(logits, k):
    row = logits.tolist()
    best = set(sorted(range(len(row)), key=lambda token: (-row[token], token))[: k or len(row)])
    return torch.tensor([row[token] if token in best else -math.inf for token in range(len(row))], dtype=logits.dtype)


def top_p_step_by_step(logits, p):
    probabilities, total, kept_ids = logits.double().softmax(-1).tolist(), 0.0, []
    if p == 1:
        return logits.clone()
    for token in logits.argsort(descending=True, stable=True).tolist():
        kept_ids.append(token)
        total += probabilities[token]
        if total >= p:
            break
    mask = torch.ones(len(logits), dtype=torch.bool)
    mask[kept_ids] = False
    return logits.masked_fill(mask, -math.inf)


def min_p_on_log_probabilities(logits, min_p):
    if min_p == 0:
        return logits
    logprobs = logits.log_softmax(-1)
    return torch.where(logprobs >= logprobs.max() + math.log(min_p), logits, torch.tensor(-math.inf))


def sample_with_numpy(logits, params, u, previous_ids):
    row = logits.numpy().astype(np.float64)
    if not np.isfinite(row.max()):
        raise NonFiniteLogits("no")
    row = penalty_in_a_loop(torch.tensor(row), previous_ids, params.repetition_penalty).numpy()
    if params.temperature == 0:
        return int(np.argmax(row))
    left = top_k_by_a_key(torch.tensor(row / params.temperature), params.top_k)
    left = min_p_on_log_probabilities(top_p_step_by_step(left.double(), params.top_p), params.min_p)
    total = 0.0
    for token, p in enumerate(left.softmax(-1).tolist()):
        total += p
        if total > u:
            return token
    return kept(left)[-1]


@pytest.mark.parametrize("name, other", [
    ("repetition_penalty", penalty_in_a_loop), ("apply_temperature", temperature_in_float64),
    ("top_k_filter", top_k_by_a_key), ("top_p_filter", top_p_step_by_step),
    ("min_p_filter", min_p_on_log_probabilities), ("sample", sample_with_numpy),
])  # fmt: skip
def test_other_right_answers_get_full_marks(lab, name, other):
    lesson = checks.lesson("05")
    for seed in range(5):
        got = examine(lesson, name, lab.replaced(name, other), lab, seed=seed, hidden=True)
        assert [(verdict.probe.name, verdict.reason, verdict.detail) for verdict in got.verdicts if not verdict.ok] == []
