"""Lab 06's reference. Oracles: PyTorch's own FLOP counter on the reference table, the tensors' bytes, numpy's percentiles."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import strategies as st
from tests.caches import opened
from tests.random_model import TINY, random_model
from torch.utils.flop_counter import FlopCounterMode

from llmcourse import given
from llmcourse.batch import Batch, Chunk
from llmcourse.cache import ContiguousCache
from llmcourse.measure import roofline
from llmcourse.measure.clock import Latency
from llmcourse.ops import REFERENCE

UNTIED = replace(TINY, tied=False)
seconds = st.floats(0.001, 10)


@pytest.fixture(scope="module")
def lab():
    """The lab's own solutions."""
    return given.answer("06")


@pytest.mark.parametrize("n, past", [(1, 2), (1, 37), (7, 0), (13, 26)])
def test_the_labs_flops_are_those_that_pytorch_counts(lab, n, past):
    model, cache = random_model(dtype=torch.float32), ContiguousCache(TINY, torch.float32, "cpu")
    slot = opened(cache, n + past)
    if past:
        model.forward(Batch.of([Chunk([1] * past, slot=slot, n_sample=0)]), cache, REFERENCE)
    with FlopCounterMode(display=False) as counter:
        model.forward(Batch.of([Chunk([2] * n, past, slot)]), cache, REFERENCE)
    masked = TINY.n_layers * 4 * TINY.n_heads * TINY.head_dim * n * (n - 1) // 2  # scores of the future, computed and masked
    assert lab.forward_flops(TINY, n, past) == counter.get_total_flops() - masked


@pytest.mark.parametrize("config", [TINY, UNTIED], ids=["tied", "untied"])
@pytest.mark.parametrize("n, past", [(1, 0), (1, 30), (9, 4)])
def test_the_labs_bytes_are_those_of_the_tensors(lab, config, n, past):
    model, cache = random_model(dtype=torch.float32, config=config), ContiguousCache(config, torch.bfloat16, "cpu")
    weights = model.weights
    tensors = [tensor for layer in weights.layers for tensor in vars(layer).values() if tensor is not None]
    expected = sum(tensor.nbytes for tensor in [*tensors, weights.norm, weights.head])
    expected += 0 if config.tied else weights.embed[:n].nbytes
    assert lab.forward_bytes(config, n, past, 32, 16) == expected + cache.bytes_for(n + past)


@pytest.mark.parametrize("config", [TINY, UNTIED], ids=["tied", "untied"])
@pytest.mark.parametrize("n, past, bits", [(1, 0, (32, 32)), (1, 60, (4.5, 8)), (40, 0, (16, 4)), (5, 21, (3, 16))])
def test_the_lab_counts_as_the_package_does(lab, config, n, past, bits):
    assert lab.forward_flops(config, n, past) == roofline.forward_flops(config, n, past)
    assert lab.forward_bytes(config, n, past, *bits) == roofline.forward_bytes(config, n, past, *bits)


def test_the_worked_examples_of_the_docstrings_are_right(lab):
    small = replace(TINY, vocab_size=10, width=4, n_layers=1, ffn_width=6, n_heads=2, n_kv_heads=1, head_dim=3)
    assert lab.forward_flops(small, 2, 1) == 776
    assert lab.forward_bytes(small, 2, 1, 16, 8) == 410
    assert lab.roofline_seconds(flops=100, bytes=40, peak_flops=50, bandwidth=10) == 4.0
    assert lab.latency_summary(10.0, [12.0, 12.5, 14.0, 14.25]) == pytest.approx(
        {"ttft": 2.0, "itl_mean": 0.75, "itl_p50": 0.5, "itl_p95": 1.4, "itl_p99": 1.48, "tokens_per_s": 4 / 4.25})


@drawn(st.floats(0, 1e4), st.lists(seconds, min_size=2, max_size=40))
def test_the_labs_percentiles_are_numpys(arrival, gaps):
    times = [arrival + sum(gaps[: i + 1]) for i in range(len(gaps))]
    got = given.answer("06").latency_summary(arrival, times)
    between = np.diff(times)
    assert [got["itl_p50"], got["itl_p95"], got["itl_p99"]] == pytest.approx(list(np.percentile(between, [50, 95, 99])))
    assert got["itl_mean"] == pytest.approx(fmean(between))


@drawn(st.floats(0, 1e4), st.lists(seconds, min_size=1, max_size=20))
def test_the_labs_summary_is_the_packages(arrival, gaps):
    times = [arrival + sum(gaps[: i + 1]) for i in range(len(gaps))]
    got, ours = given.answer("06").latency_summary(arrival, times), Latency.from_times(arrival, times)
    itl = ours.itl or (None, None, None)
    expected = [ours.ttft_s, ours.itl_mean_s, *itl, ours.tokens_per_s]
    for mine, theirs in zip(got.values(), expected):
        assert mine == (None if theirs is None else pytest.approx(theirs))
