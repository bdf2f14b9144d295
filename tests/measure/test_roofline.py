"""The work of a step, counted. Oracles, exact: PyTorch's own FLOP counter on the reference table; the tensors' bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.caches import opened
from tests.random_model import TINY, random_model
from torch.utils.flop_counter import FlopCounterMode

from llmcourse.batch import Batch, Chunk
from llmcourse.cache import ContiguousCache, NoCache
from llmcourse.measure.roofline import (
    Ceilings, Placed, Work, forward_bytes, forward_flops, kv_bytes, roofline_seconds, step_work, weight_bytes_read,
)  # fmt: skip
from llmcourse.model.load import load_config
from llmcourse.ops import REFERENCE

UNTIED = replace(TINY, tied=False)
# (n_tokens, n_past). Not (1, 0): over a single key PyTorch scales instead of multiplying matrices, and counts nothing.
SHARES = [(1, 1), (1, 2), (1, 37), (2, 0), (7, 0), (40, 0), (5, 9), (13, 26)]


def counted_by_pytorch(config, pieces: list[tuple[int, int, int]]) -> int:
    """FLOPs of one real step of a model with random weights; pieces: (n_tokens, n_past, n_logits) of each request."""
    model = random_model(dtype=torch.float32, config=config)
    cache = ContiguousCache(config, torch.float32, "cpu")
    slots = [opened(cache, n + past) for n, past, _ in pieces]
    for (_, past, _), slot in zip(pieces, slots):
        if past:
            model.forward(Batch.of([Chunk([1] * past, slot=slot, n_sample=0)]), cache, REFERENCE)
    batch = Batch.of([Chunk([2] * n, past, slot, n_sample) for (n, past, n_sample), slot in zip(pieces, slots)])
    with FlopCounterMode(display=False) as counter:
        model.forward(batch, cache, REFERENCE)
    return counter.get_total_flops()


def masked(config, n: int) -> int:
    """What the reference computes on top: scores of the future, which it masks. Pairs of a row and a later new column."""
    return config.n_layers * 2 * 2 * config.n_heads * config.head_dim * n * (n - 1) // 2


@pytest.mark.parametrize("n, past", SHARES)
def test_flops_of_a_step_are_those_that_pytorch_counts(n, past):
    assert forward_flops(TINY, n, past) == counted_by_pytorch(TINY, [(n, past, 1)]) - masked(TINY, n)


@pytest.mark.parametrize("n_logits", [0, 1, 5])
def test_only_the_rows_whose_logits_are_wanted_meet_the_vocabulary(n_logits):
    assert forward_flops(UNTIED, 5, 9, n_logits) == counted_by_pytorch(UNTIED, [(5, 9, n_logits)]) - masked(UNTIED, 5)


def test_flops_of_a_step_over_several_requests_are_the_sum():
    pieces = [(1, 12), (6, 0), (3, 20)]
    expected = counted_by_pytorch(TINY, [(n, past, 1) for n, past in pieces]) - sum(masked(TINY, n) for n, _ in pieces)
    assert step_work(TINY, pieces).flops == expected


def test_a_prompt_in_pieces_costs_what_it_costs_whole():
    whole = forward_flops(TINY, 40, n_logits=0)
    assert sum(forward_flops(TINY, n, past, n_logits=0) for n, past in [(13, 0), (7, 13), (20, 20)]) == whole


def tensors_of(model) -> list[torch.Tensor]:
    """Every weight tensor once, without the embedding where the head is another tensor."""
    weights = model.weights
    layers = [tensor for layer in weights.layers for tensor in vars(layer).values() if tensor is not None]
    return [*layers, weights.norm, weights.head]


@pytest.mark.parametrize("config", [TINY, UNTIED], ids=["tied", "untied"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("n", [1, 9])
def test_a_step_reads_every_weight_once(config, dtype, n):
    model = random_model(dtype=dtype, config=config)
    rows = 0 if config.tied else n * config.width * dtype.itemsize
    assert weight_bytes_read(config, n, 8 * dtype.itemsize) == sum(tensor.nbytes for tensor in tensors_of(model)) + rows


def test_the_default_models_bytes_are_those_of_its_tensors(model):
    assert weight_bytes_read(model.config, 1, 32) == sum(tensor.nbytes for tensor in tensors_of(model))


def test_keys_and_values_are_counted_once_whether_they_are_read_or_written():
    cache = ContiguousCache(TINY, torch.float64, "cpu")
    opened(cache, 23)
    slot, = cache.slots.values()
    assert kv_bytes(TINY, 23, 64) == cache.bytes_for(23) == slot.keys.nbytes + slot.values.nbytes
    for n, past in [(23, 0), (1, 22), (10, 13)]:
        assert forward_bytes(TINY, n, past, 64, 64) == weight_bytes_read(TINY, n, 64) + cache.bytes_for(23)


def test_fewer_bits_are_fewer_bytes_of_weights_and_of_the_cache_apart():
    base = forward_bytes(TINY, 1, 20, 32, 32)
    assert base - forward_bytes(TINY, 1, 20, 4.5, 32) == TINY.n_params * 27.5 / 8
    assert base - forward_bytes(TINY, 1, 20, 32, 8) == kv_bytes(TINY, 21, 24)


def test_a_step_over_several_requests_reads_the_weights_once():
    requests = [(1, 10), (1, 30), (4, 0)]
    assert step_work(TINY, requests, 64, 16).bytes == weight_bytes_read(TINY, 6, 64) + kv_bytes(TINY, 11 + 31 + 4, 16)
    assert step_work(TINY, [(3, 8)], 64, 16).bytes == forward_bytes(TINY, 3, 8, 64, 16)


@pytest.mark.parametrize("flops, bytes, seconds", [(100, 1, 10.0), (1, 100, 20.0), (50, 25, 5.0)])
def test_the_longer_of_computing_and_moving_counts(flops, bytes, seconds):
    assert roofline_seconds(flops, bytes, peak_flops=10, bandwidth=5) == seconds
    assert Ceilings(bytes_per_s=5, flops_per_s=10).seconds(Work(flops, bytes)) == seconds


def test_work_is_bound_by_memory_below_the_ridge_and_by_compute_from_it_on():
    roof = Ceilings(bytes_per_s=5, flops_per_s=10)
    assert roof.ridge == 2.0
    assert [roof.bound(Work(flops, 10)) for flops in (19, 20, 21)] == ["memory", "compute", "compute"]
    assert [roof.reachable(intensity) for intensity in (0.5, 2.0, 8.0)] == [2.5, 10, 10]


def test_utilization_is_the_share_of_what_the_machine_could_have_done():
    placed = Placed(Work(flops=100, bytes=10), seconds=20.0, ceilings=Ceilings(bytes_per_s=5, flops_per_s=10))
    assert (placed.mfu, placed.mbu, placed.share) == (0.5, 0.1, 0.5)
    assert (placed.flops_per_s, placed.bytes_per_s, placed.bound) == (5.0, 0.5, "compute")


def test_of_the_default_model_prefill_is_denser_than_decode(default_folder):
    config = load_config(default_folder)
    prefill, decode = step_work(config, [(512, 0)]), step_work(config, [(1, 512)])
    assert prefill.intensity > 100 > 1 > decode.intensity
