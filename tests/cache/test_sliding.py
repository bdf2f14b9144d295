"""The sliding window: exactly full attention under the window's mask, in memory that stops growing.

Oracle: the reference table on the whole text at once, with no cache, its attention masked by the definition: position p
sees j ≤ p where j > p − window or j < n_sink. Float64, bound 1e-12: the same terms, added in another order.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse.batch import Batch, Chunk
from llmcourse.cache import SlidingWindowCache
from llmcourse.ops import CPU, REFERENCE
from llmcourse.ops.reference import grouped_attention
from tests.caches import opened
from tests.random_model import TINY, random_model

EXACT = dict(rtol=0, atol=1e-12)
IDS = torch.randint(0, TINY.vocab_size, (60,), generator=torch.Generator().manual_seed(3)).tolist()


@pytest.fixture(scope="module")
def tiny():
    return random_model()


def masked(window, n_sink):
    """The reference table, its attention under the window's mask."""

    def attend(q, kv, batch, scale):
        T = batch.lengths[0]
        p, j = torch.arange(T)[:, None], torch.arange(T)
        return grouped_attention(q, *kv[0], scale, (j <= p) & ((j > p - window) | (j < n_sink)))

    return replace(REFERENCE, attend=attend)


def through_the_cache(model, cache, ids, pieces, parts=CPU):
    """Logits of all ids, computed in pieces of the given sizes."""
    slot, logits, start = opened(cache, len(ids)), [], 0
    for n in pieces:
        batch = Batch.of([Chunk(ids[start : start + n], start, slot, n_sample=n)])
        logits.append(model.forward(batch, cache, parts))
        start += n
    cache.close(slot)
    return torch.cat(logits)


def new_cache(window, n_sink):
    return SlidingWindowCache(TINY, torch.float64, "cpu", window, n_sink)


@pytest.mark.parametrize("parts", [REFERENCE, CPU], ids=["reference", "cpu"])
@pytest.mark.parametrize("window, n_sink", [(8, 0), (8, 3), (1, 0), (1, 2), (5, 9)])
@pytest.mark.parametrize("excess", [-1, 0, 1, 2, 30])
def test_decode_equals_masked_attention_around_the_window_and_far_beyond(tiny, parts, window, n_sink, excess):
    n = max(1, window + excess)
    wanted = tiny(IDS[:n], masked(window, n_sink))
    got = through_the_cache(tiny, new_cache(window, n_sink), IDS[:n], [1] * n, parts)
    torch.testing.assert_close(got, wanted, **EXACT)


@pytest.mark.parametrize("parts", [REFERENCE, CPU], ids=["reference", "cpu"])
@pytest.mark.parametrize("window, n_sink", [(8, 3), (7, 0), (1, 1), (40, 4), (64, 0)])
@pytest.mark.parametrize("piece", [1, 2, 7, 8, 9, 11, 12, 23, 60])
def test_a_prompt_in_pieces_of_any_size_equals_masked_attention(tiny, parts, window, n_sink, piece):
    wanted = tiny(IDS, masked(window, n_sink))
    pieces = [piece] * (60 // piece) + [60 % piece] * (60 % piece > 0)
    torch.testing.assert_close(through_the_cache(tiny, new_cache(window, n_sink), IDS, pieces, parts), wanted, **EXACT)


@pytest.mark.parametrize("split", range(1, 60))
def test_a_prompt_split_anywhere_then_decoded_equals_masked_attention(tiny, split):
    wanted = tiny(IDS, masked(9, 2))
    got = through_the_cache(tiny, new_cache(9, 2), IDS, [split, *[1] * min(3, 60 - split), *[60 - split - 3] * (split < 57)])
    torch.testing.assert_close(got, wanted, **EXACT)


@pytest.mark.parametrize("wrong", [(7, 2), (9, 2), (8, 1), (8, 3), (8, 0), (6, 2)])
def test_a_window_or_sinks_off_by_one_turn_the_comparison_red(tiny, wrong):
    wanted = tiny(IDS, masked(8, 2))
    got = through_the_cache(tiny, new_cache(*wrong), IDS, [20, 1, 1, 38])
    assert (got - wanted).abs().max() > 1e-3


def test_a_window_longer_than_the_text_is_full_attention(tiny):
    torch.testing.assert_close(through_the_cache(tiny, new_cache(60, 0), IDS, [13, 47]), tiny(IDS, REFERENCE), **EXACT)


def test_memory_stops_growing_at_window_and_sinks():
    cache = SlidingWindowCache(TINY, torch.float32, "cpu", window=16, n_sink=4)
    opened(cache, 10_000)
    assert cache.nbytes == cache.bytes_for(20) == cache.bytes_for(10_000) == 20 * cache.bytes_for(1)


def test_a_short_request_takes_no_more_than_its_capacity():
    cache = SlidingWindowCache(TINY, torch.float32, "cpu", window=1_024, n_sink=4)
    opened(cache, 30)
    assert cache.nbytes == cache.bytes_for(30)


def test_what_was_in_memory_before_never_shows(tiny, monkeypatch):
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, **k: empty(*a, **k).fill_(float("nan")))
    cache = new_cache(8, 3)
    for pieces in ([60], [1] * 60, [5, 20, 35]):
        assert through_the_cache(tiny, cache, IDS, pieces).isfinite().all()


def test_requests_in_one_step_stay_apart(tiny):
    cache = new_cache(6, 2)
    a, b = opened(cache, 40), opened(cache, 40)
    tiny.forward(Batch.of([Chunk(IDS[:15], 0, a), Chunk(IDS[20:23], 0, b)]), cache, CPU)
    both = tiny.forward(Batch.of([Chunk(IDS[23:33], 3, b, n_sample=10), Chunk(IDS[15:16], 15, a)]), cache, CPU)
    torch.testing.assert_close(both[:10], tiny(IDS[20:33], masked(6, 2))[3:], **EXACT)
    torch.testing.assert_close(both[10:], tiny(IDS[:16], masked(6, 2))[15:], **EXACT)


def test_tokens_beyond_the_capacity_are_refused_before_anything_is_written():
    cache = SlidingWindowCache(TINY, torch.float32, "cpu", window=3, n_sink=1)
    slot = opened(cache, 4)
    before = cache.slots[slot].keys.clone().nan_to_num()
    k = torch.ones(5, TINY.n_kv_heads, TINY.head_dim)
    with pytest.raises(ValueError, match="5 tokens do not fit into slot 0, opened for 4"):
        cache.update(0, k, k, Batch.of([Chunk([1] * 5, 0, slot)]))
    assert torch.equal(cache.slots[slot].keys.nan_to_num(), before)


def test_a_closed_slot_is_used_again():
    cache = SlidingWindowCache(TINY, torch.float32, "cpu", window=3)
    first, second = opened(cache, 9), opened(cache, 9)
    cache.close(first)
    assert opened(cache, 9) == first != second
