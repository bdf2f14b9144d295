"""Layers with windows of their own. Oracle: softmax over the keys that a token may see, one row and head at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse import Engine, SamplingParams
from llmcourse.batch import Batch, Chunk
from llmcourse.cache import make_cache
from llmcourse.cache.base import within
from llmcourse.ops import CPU, FUSED, REFERENCE
from tests.caches import opened
from tests.random_model import TINY, random_model

WINDOWS = (5, None, 1)
IDS = [5, 9, 2, 77, 31, 8, 8, 60, 3, 3, 12, 90, 41, 7, 66, 15, 2, 28]


def model(windows=WINDOWS):
    return random_model(config=replace(TINY, windows=windows))


def masked(q, kv, batch, scale, window):
    """The oracle: for a request without a past, every row alone over the keys that its window leaves."""
    ((k, v, *_),) = kv
    out = torch.empty_like(q)
    for i in range(len(q)):
        first = 0 if window is None else max(0, i + 1 - window)
        out[i] = REFERENCE.attend(q[i : i + 1], [(k[first : i + 1], v[first : i + 1])], batch, scale)[0]
    return out


def expected(ids):
    """Logits of every position: the model without windows in its config, and attention that knows them."""
    layers = iter(WINDOWS)
    parts = replace(REFERENCE, attend=lambda q, kv, batch, scale: masked(q, kv, Batch.of([Chunk([1])]), scale, next(layers)))
    return model(None)(ids, parts)


def in_pieces(tiny, spec, ids, pieces, parts=CPU):
    cache = make_cache(spec, tiny.config, tiny.dtype, "cpu")
    slot, logits, start = opened(cache, len(ids)), [], 0
    for n in pieces:
        batch = Batch.of([Chunk(ids[start : start + n], start, slot, n_sample=n)], cache)
        logits.append(tiny.forward(batch, cache, parts))
        start += n
    return torch.cat(logits)


@pytest.mark.parametrize("parts", [REFERENCE, CPU, FUSED], ids=lambda table: table.name)
def test_without_a_cache_every_layer_sees_its_own_window(parts):
    torch.testing.assert_close(model()(IDS, parts), expected(IDS), rtol=0, atol=1e-12)


@pytest.mark.parametrize("parts", [REFERENCE, CPU, FUSED], ids=lambda table: table.name)
@pytest.mark.parametrize("pieces", [[18], [1] * 18, [4, 5, 9], [17, 1], [5, 13]], ids=str)
@pytest.mark.parametrize("spec", ["contiguous", "window:64", "window:18+2"])
def test_any_split_gives_the_same_logits(spec, pieces, parts):
    torch.testing.assert_close(in_pieces(model(), spec, IDS, pieces, parts), expected(IDS), rtol=0, atol=1e-12)


@pytest.mark.parametrize("spec", ["int8", "int4:token/5", "int4:channel/4", "window:6+2", "window:3"])
def test_caches_that_forget_or_round_give_the_same_for_any_split(spec):
    whole = in_pieces(model(), spec, IDS * 3, [54])
    assert (whole - in_pieces(model(None), spec, IDS * 3, [54])).abs().max() > 0.1  # the layers' windows do something
    for pieces in ([1] * 54, [20, 1, 33], [50, 4]):
        torch.testing.assert_close(in_pieces(model(), spec, IDS * 3, pieces), whole, rtol=0, atol=1e-12)


def test_a_caches_window_and_a_layers_window_both_hold():
    """Oracle: a cache of 6 tokens over layers of 5, all and 1 is the same as layers of 5, 6 and 1."""
    both = in_pieces(model(), "window:6", IDS, [18])
    torch.testing.assert_close(in_pieces(model((5, 6, 1)), "contiguous", IDS, [18]), both, rtol=0, atol=1e-12)


@pytest.mark.parametrize("window", [1, 2, 5, 6, 7, 30, None])
@pytest.mark.parametrize("n, T", [(1, 6), (3, 6), (6, 6), (1, 1)])
def test_an_entry_under_a_window_marks_just_the_keys_in_it(window, n, T):
    K = torch.arange(T)[:, None, None]
    got, _, *visible = within((K, K), n, window)
    for i in range(n):
        position = T - n + i
        kept = visible[0][i] if visible else torch.arange(len(got)) <= len(got) - n + i
        wanted = [j for j in range(T) if j <= position and (window is None or j > position - window)]
        assert got[kept].flatten().tolist() == wanted


def test_one_row_under_a_window_copies_nothing():
    K = torch.randn(9, 2, 3)
    got, _ = within((K, K), 1, 4)
    assert got.data_ptr() == K[5:].data_ptr()


def test_greedy_ids_do_not_depend_on_the_arrangement():
    prompts, params = [IDS, [1], IDS[3:9]], SamplingParams(max_tokens=30, temperature=0)
    want = [result.output_ids for result in Engine(model(), REFERENCE, cache="none").generate(prompts, params)]
    for settings in (dict(), dict(max_step_tokens=4), dict(max_requests=1), dict(parts=FUSED)):
        assert [result.output_ids for result in Engine(model(), **settings).generate(prompts, params)] == want
