"""From logits to a token: each filter alone, the fixed order, edge values, and the distribution of the draws."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llmcourse.engine.sampling import SamplingParams
from llmcourse.errors import NonFiniteLogits
from llmcourse.ops.sampling import (
    apply_temperature, draw, min_p_filter, probabilities, repetition_penalty, sample, top_k_filter, top_p_filter,
)  # fmt: skip

LOGITS = torch.tensor([2.0, -1.0, 0.5, 3.0, -2.0, 0.5])


def kept(logits):
    return (logits > -math.inf).nonzero().flatten().tolist()


def test_penalty_divides_positive_and_multiplies_negative_logits_once():
    out = repetition_penalty(LOGITS, [0, 1, 0, 1], 2.0)
    assert out.tolist() == [1.0, -2.0, 0.5, 3.0, -2.0, 0.5]
    assert LOGITS.tolist() == [2.0, -1.0, 0.5, 3.0, -2.0, 0.5]  # the caller's row is untouched


def test_temperature_halves_and_doubles_differences():
    hot, cold = apply_temperature(LOGITS, 2.0), apply_temperature(LOGITS, 0.5)
    assert (hot[3] - hot[0]).item() == 0.5 and (cold[3] - cold[0]).item() == 2.0


def test_a_tiny_temperature_does_not_overflow():
    """300 / 1e-37 is beyond float32: only what is left after the maximum was subtracted may be divided."""
    assert sample(100 * LOGITS, SamplingParams(temperature=1e-37), 0.999, []) == 3


@pytest.mark.parametrize("k, ids", [(1, [3]), (2, [0, 3]), (3, [0, 2, 3]), (4, [0, 2, 3, 5]), (0, range(6)), (99, range(6))])
def test_top_k_keeps_exactly_k_and_of_equal_ones_the_smaller_ids(k, ids):
    assert kept(top_k_filter(LOGITS, k)) == list(ids)


@pytest.mark.parametrize(
    "p, ids", [(0.0, [3]), (0.4, [3]), (0.5, [3]), (0.51, [1, 3]), (0.7, [1, 3]), (0.76, [0, 1, 3]), (1.0, [0, 1, 2, 3])]
)
def test_top_p_keeps_the_token_that_crosses_p(p, ids):
    """Probabilities 1/8, 1/4, 1/8, 1/2: token 3 alone reaches 0.5, tokens 3 and 1 reach 0.75."""
    logits = torch.tensor([0.125, 0.25, 0.125, 0.5], dtype=torch.float64).log()
    assert kept(top_p_filter(logits, p)) == ids


def test_min_p_compares_with_the_likeliest_token():
    logits = torch.tensor([0.125, 0.25, 0.125, 0.5], dtype=torch.float64).log()
    assert kept(min_p_filter(logits, 0.3)) == [1, 3]
    assert kept(min_p_filter(logits, 0.6)) == [3]
    assert kept(min_p_filter(logits, 0.0)) == [0, 1, 2, 3]
    assert kept(min_p_filter(logits, 1.0)) == [3]  # at least min_p times that of the likeliest, which so never goes itself


@pytest.mark.parametrize("setting", [{"top_k": 1}, {"top_p": 0.5}, {"min_p": 0.6}], ids=str)
def test_every_filter_is_at_work_in_sample(setting):
    """Without a filter u = 0 draws token 0; each of these leaves token 3 alone."""
    logits = torch.tensor([0.125, 0.25, 0.125, 0.5], dtype=torch.float64).log()
    assert sample(logits, SamplingParams(), 0.0, []) == 0
    assert sample(logits, SamplingParams(**setting), 0.0, []) == 3


def test_temperature_comes_before_top_p():
    """Probabilities 0.6, 0.3, 0.1: at temperature 1 top-p 0.5 keeps one token; at temperature 4 it keeps two."""
    logits = torch.tensor([0.6, 0.3, 0.1]).log()
    assert sample(logits, SamplingParams(temperature=1.0, top_p=0.5), 0.99, []) == 0
    assert sample(logits, SamplingParams(temperature=4.0, top_p=0.5), 0.99, []) == 1


def test_the_penalty_comes_before_the_temperature_and_applies_to_greedy():
    assert sample(LOGITS, SamplingParams(temperature=0, repetition_penalty=2.0), 0.0, [3]) == 0


def test_greedy_takes_the_smallest_of_equal_ids():
    assert sample(torch.tensor([1.0, 4.0, 4.0]), SamplingParams(temperature=0), 0.9, []) == 1


def test_at_temperature_zero_all_probability_lies_on_the_greedy_token():
    assert probabilities(torch.tensor([1.0, 4.0, 4.0]), SamplingParams(temperature=0), []).tolist() == [0, 1, 0]


@pytest.mark.parametrize("u", [0.0, 0.5, 1 - 2**-53])
def test_one_finite_logit_is_always_drawn(u):
    logits = torch.full((50,), -math.inf)
    logits[17] = -3.0
    assert sample(logits, SamplingParams(temperature=1.3, top_p=0.0, top_k=999), u, []) == 17


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_non_finite_logits_are_an_error(bad):
    logits = LOGITS.clone()
    logits[2] = bad
    for temperature in (0, 1):
        with pytest.raises(NonFiniteLogits, match="largest of 6 logits"):
            sample(logits, SamplingParams(temperature=temperature), 0.5, [])


def test_only_minus_infinity_is_an_error():
    with pytest.raises(NonFiniteLogits):
        sample(torch.full((4,), -math.inf), SamplingParams(), 0.5, [])


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=40), st.floats(0, 1, exclude_max=True))
def test_draw_inverts_the_cumulative_distribution(values, u):
    """Oracle: a plain loop over the running sum in float64; a rounding error may only matter on a boundary."""
    logits = torch.tensor(values, dtype=torch.float64)
    token = draw(logits.softmax(-1), u)
    probabilities = logits.softmax(-1)
    before, after = probabilities[:token].sum().item(), probabilities[: token + 1].sum().item()
    assert before - 1e-12 <= u <= after + 1e-12


@given(
    st.lists(st.floats(-20, 20), min_size=1, max_size=30),
    st.integers(0, 35), st.floats(0, 1), st.floats(0, 1), st.floats(0.05, 5),
)  # fmt: skip
def test_filters_never_drop_the_likeliest_token(values, k, p, min_p, temperature):
    logits = torch.tensor(values)
    scaled = apply_temperature(logits, temperature)
    out = min_p_filter(top_p_filter(top_k_filter(scaled, k), p), min_p)
    assert out[scaled.argmax()] == scaled.max()
    assert all(out[i] == scaled[i] for i in kept(out))


@given(st.integers(0, 2**32), st.floats(0, 0.999), st.sampled_from([0.5, 2.0, 8.0]))
def test_top_p_over_a_real_vocabulary_equals_sorting_all_of_it(seed, p, spread):
    """Oracle: the definition, with a sort of all 5,000 tokens; float64, so that rounding (1e-16) does not decide."""
    logits = torch.randn(5_000, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * spread
    order = logits.argsort(descending=True, stable=True)
    sums = logits[order].softmax(-1).cumsum(-1)
    n_kept = int((sums < p).sum()) + 1
    assert kept(top_p_filter(logits, p)) == sorted(order[:n_kept].tolist())


CHI_SQUARE_11_AT_1E6 = 48.7  # quantile 1 − 1e-6 of chi-square with 11 degrees of freedom (scipy.stats.chi2.isf(1e-6, 11))


def chi_square(logits, params, expected, n=20_000):
    generator = torch.Generator().manual_seed(5)
    counts = torch.zeros(len(logits), dtype=torch.float64)
    for u in torch.rand(n, generator=generator, dtype=torch.float64).tolist():
        counts[sample(logits, params, u, [])] += 1
    return ((counts - n * expected).square() / (n * expected)).sum().item()


def test_draws_follow_the_softmax():
    """Chi-square over 12 tokens; a right sampler fails once in a million seeds, and the seed is fixed."""
    logits = torch.randn(12, generator=torch.Generator().manual_seed(3))
    expected = (logits.double() / 1.4).softmax(-1)
    assert chi_square(logits, SamplingParams(temperature=1.4), expected) < CHI_SQUARE_11_AT_1E6


def test_the_distribution_test_notices_a_wrong_temperature():
    """The negative control: temperature 1.25 instead of 1.4."""
    logits = torch.randn(12, generator=torch.Generator().manual_seed(3))
    expected = (logits.double() / 1.4).softmax(-1)
    assert chi_square(logits, SamplingParams(temperature=1.25), expected) > CHI_SQUARE_11_AT_1E6
