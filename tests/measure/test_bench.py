"""Benchmarks: what is counted, and which runs count."""

from __future__ import annotations

import pytest
from tests.random_model import TINY, random_model

from llmcourse.cache import ContiguousCache
from llmcourse.engine.engine import Engine
from llmcourse.engine.request import Result
from llmcourse.errors import PromptTooLong
from llmcourse.measure.bench import Bench, bench_decode, bench_prefill
from llmcourse.measure.roofline import forward_flops
from llmcourse.ops import REFERENCE

@pytest.fixture
def timed(monkeypatch):
    """Engines whose generations take the times given, one after the other."""

    def timed(*times: tuple[float, list[float]]) -> list:
        asked, results = [], iter(times)

        def generate(self, prompt, params):
            ttft, itl = next(results)
            asked.append((prompt, params))
            return Result("", prompt, [0] * (len(itl) + 1), "length", ttft, itl, 0.0, [])

        monkeypatch.setattr(Engine, "generate", generate)
        return asked

    return timed


def test_decode_counts_gaps_only_and_leaves_the_warm_up_out(timed):
    timed((9.0, [9.0, 9.0]), (5.0, [0.1, 0.3]), (5.0, [0.2, 0.2]), (5.0, [0.1, 0.1]))
    measured = bench_decode(random_model(), n_prompt=4, n_output=3, runs=3)
    assert measured.runs == pytest.approx([5.0, 5.0, 10.0])
    assert measured.tokens_per_s == pytest.approx(5.0)


def test_prefill_counts_prompt_tokens_over_ttft_and_leaves_the_warm_up_out(timed):
    timed((9.0, []), (2.0, []), (4.0, []), (1.0, []))
    measured = bench_prefill(random_model(), n_prompt=8, runs=3)
    assert measured.runs == pytest.approx([4.0, 2.0, 8.0])
    assert measured.tokens_per_s == pytest.approx(4.0)


def test_every_run_has_another_prompt_and_is_greedy_to_its_full_length(timed):
    asked = timed(*[(1.0, [1.0])] * 4)
    bench_decode(random_model(), n_prompt=6, n_output=2, runs=3)
    prompts = {tuple(prompt) for prompt, _ in asked}
    assert len(prompts) == 4 and {len(prompt) for prompt in prompts} == {6}
    assert {(params.max_tokens, params.temperature, params.ignore_eos) for _, params in asked} == {(2, 0, True)}


# Three steps after a prompt of 5 tokens bring the request to 6, 7 and 8: the mean is 7. Every token keeps 3 layers of 2
# heads of 10 numbers, keys and values, in float64.
@pytest.mark.parametrize("cache, kept", [("contiguous", 7 * 2 * 3 * 2 * 10 * 8), ("none", 0)])
def test_a_real_benchmark_of_a_tiny_model_counts_the_bytes_of_its_own_cache_step_by_step(cache, kept):
    measured = bench_decode(random_model(), REFERENCE, cache=cache, n_prompt=5, n_output=4, runs=2)
    assert (measured.kind, measured.n_prompt, measured.n_output, len(measured.runs)) == ("decode", 5, 4, 2)
    assert measured.bytes_per_token == TINY.n_params * 8 + kept
    assert measured.bytes_per_s == pytest.approx(measured.bytes_per_token * measured.tokens_per_s)
    assert measured.flops_per_s is None


def test_a_cache_that_keeps_fewer_bytes_counts_for_fewer(monkeypatch):
    whole = bench_decode(random_model(), REFERENCE, n_prompt=5, n_output=4, runs=1).bytes_per_token
    monkeypatch.setattr(ContiguousCache, "bytes_for", lambda self, n_tokens: 100 * n_tokens)
    assert whole > bench_decode(random_model(), REFERENCE, n_prompt=5, n_output=4, runs=1).bytes_per_token == (
        TINY.n_params * 8 + 700)


def test_gaps_of_all_runs_but_the_warm_up_are_in_the_percentiles(timed):
    timed((9.0, [9.0, 9.0]), (5.0, [0.1, 0.3]), (5.0, [0.5, 0.2]))
    assert bench_decode(random_model(), n_prompt=4, n_output=3, runs=2).itl == pytest.approx((0.25, 0.47, 0.494))


def test_prefill_counts_the_flops_of_its_prompt(timed):
    timed((9.0, []), (2.0, []))
    measured = bench_prefill(random_model(), n_prompt=8, runs=1)
    assert measured.flops_per_s == pytest.approx(forward_flops(TINY, 8) / 2.0)
    assert measured.itl is None


def test_flops_per_second_are_flops_per_token_times_tokens_per_second():
    assert Bench("prefill", 10, 1, [3.0, 1.0, 2.0], flops_per_token=7.0).flops_per_s == 14.0


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda model: bench_decode(model, n_output=1), ValueError),
        (lambda model: bench_decode(model, n_output=4, runs=0), ValueError),
        (lambda model: bench_prefill(model, n_prompt=0), ValueError),
        (lambda model: bench_prefill(model, n_prompt=64), PromptTooLong),
        (lambda model: bench_decode(model, n_prompt=32, n_output=33), PromptTooLong),
    ],
)
def test_what_cannot_be_measured_is_refused(call, error):
    with pytest.raises(error):
        call(random_model())
