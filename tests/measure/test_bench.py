"""Benchmarks: what is counted, and which runs count."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.random_model import TINY, random_model
from torch.utils.flop_counter import FlopCounterMode

from llmcourse.batch import Batch, Piece
from llmcourse.cache import NoCache
from llmcourse.engine.engine import Engine
from llmcourse.engine.request import Result
from llmcourse.errors import PromptTooLong
from llmcourse.measure.bench import Bench, bench_decode, bench_prefill, decode_bytes, prefill_flops
from llmcourse.ops import REFERENCE

UNTIED = replace(TINY, tied=False)


def tensors_of(model) -> list[torch.Tensor]:
    """Every weight tensor once, without the embedding where the head is another tensor."""
    weights = model.weights
    layers = [tensor for layer in weights.layers for tensor in vars(layer).values() if tensor is not None]
    return [*layers, weights.norm, weights.head]


@pytest.mark.parametrize("config", [TINY, UNTIED], ids=["tied", "untied"])
def test_decode_reads_every_weight_once_and_the_cache(config):
    model = random_model(config=config)
    slot = Engine(model).cache
    expected = sum(tensor.nbytes for tensor in tensors_of(model)) + slot.bytes_for(23)  # oracle: the tensors themselves
    assert decode_bytes(config, 8, 23) == expected


@pytest.mark.parametrize("config", [TINY, UNTIED], ids=["tied", "untied"])
@pytest.mark.parametrize("n", [2, 7, 40])
def test_prefill_flops_are_those_that_pytorch_counts(config, n):
    model = random_model(dtype=torch.float32, config=config)
    with FlopCounterMode(display=False) as counter:
        model.forward(Batch.of([Piece(list(range(n)))]), NoCache(), REFERENCE)
    # The reference computes the scores of future tokens too, and masks them: pairs (row, later column), exactly.
    future = 2 * 2 * config.n_heads * config.head_dim * (n * n - n * (n + 1) // 2) * config.n_layers
    assert prefill_flops(config, n) == counter.get_total_flops() - future


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


@pytest.mark.parametrize("cache", ["contiguous", "none"])
def test_a_real_benchmark_of_a_tiny_model_has_the_numbers_asked_for(cache):
    measured = bench_decode(random_model(), REFERENCE, cache=cache, n_prompt=5, n_output=4, runs=2)
    assert (measured.kind, measured.n_prompt, measured.n_output, len(measured.runs)) == ("decode", 5, 4, 2)
    assert measured.bytes_per_s == pytest.approx(decode_bytes(TINY, 8, 7) * measured.tokens_per_s)
    assert measured.flops_per_s is None


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
