"""The paged cache: what is written is found through the tables, shared blocks are not written to, nothing is lost.

Oracle: the contiguous cache given the same keys and values, equal to the bit; attention over blocks against attention over
the gathered tokens within 1e-12 (float64, another order of sums).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse.batch import Batch, Chunk
from llmcourse.cache import ContiguousCache, PagedCache, make_cache, parse_spec
from llmcourse.errors import OutOfMemory
from llmcourse.ops import REFERENCE
from tests.random_model import TINY

D64 = torch.float64


def draw(n, seed, H=TINY.n_kv_heads):
    return torch.randn(n, H, TINY.head_dim, generator=torch.Generator().manual_seed(seed), dtype=D64)


def fill(caches, ids, seed, start=0):
    """Give every cache the same request; returns its slots, and what each shows of the last piece in layer 1."""
    slots, shown = [], []
    for cache in caches:
        slot, n_found = cache.open(ids, len(ids) + 20)
        assert n_found == 0 and cache.reserve(slot, len(ids))
        batch = Batch.of([Chunk(ids, 0, slot)], cache)
        for layer in range(TINY.n_layers):
            kv = cache.update(layer, draw(len(ids), seed + layer), draw(len(ids), seed + 50 + layer), batch)
            if layer == 1:
                shown.append(kv[0])
        cache.commit(slot, ids)
        slots.append(slot)
    return slots, shown


@pytest.fixture
def caches():
    return PagedCache(TINY, D64, "cpu", n_blocks=12), ContiguousCache(TINY, D64, "cpu")


@pytest.mark.parametrize("n", [1, 15, 16, 17, 40])
def test_the_tables_lead_to_what_a_contiguous_cache_keeps(caches, n):
    fill(caches, range(50, 55), 3)  # somebody before it
    _, (paged, contiguous) = fill(caches, list(range(n)), 7)
    assert all(torch.equal(a, b) for a, b in zip(paged, contiguous))


def test_a_freed_block_is_used_again_and_the_newcomer_sees_its_own_keys(caches):
    (slot, other), _ = fill(caches, list(range(40)), 3)
    caches[0].close(slot), caches[1].close(other)
    caches[0].pool.clear()
    _, (paged, contiguous) = fill(caches, list(range(60, 77)), 9)
    assert all(torch.equal(a, b) for a, b in zip(paged, contiguous))


@pytest.mark.parametrize("window", [None, 1, 5, 16, 33])
def test_attention_over_blocks_is_attention_over_the_gathered_tokens(window):
    config = replace(TINY, windows=None if window is None else (window,) * TINY.n_layers)
    cache = PagedCache(config, D64, "cpu", n_blocks=60)
    pieces = []
    for i, length in enumerate((1, 16, 17, 300, 290)):
        ids = [i] * length
        slot, _ = cache.open(ids, length)
        batch = Batch.of([Chunk(ids, 0, slot)], cache)
        cache.update(0, draw(length, i), draw(length, 100 + i), batch)
        n = 3 if length == 290 else 1
        pieces.append(Chunk(ids[-n:], length - n, slot))
    batch = Batch.of(pieces, cache)
    kv = cache.update(0, draw(batch.n_tokens, 77), draw(batch.n_tokens, 78), batch)
    q = draw(batch.n_tokens, 5, TINY.n_heads)
    got = REFERENCE.attend(q, kv, batch, 0.3)
    want = REFERENCE.attend(q, [kv[r] for r in range(len(kv))], batch, 0.3)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_tokens_taken_back_from_a_shared_block_are_written_anew_in_a_copy():
    cache = PagedCache(TINY, D64, "cpu", n_blocks=12)
    ids = list(range(33))
    (one,), _ = fill([cache], ids, 3)
    two, n_found = cache.open(ids, 60)
    assert n_found == 32 and cache.slots[two].blocks[:2] == cache.slots[one].blocks[:2]
    before = cache.keys[:, cache.slots[one].blocks].clone()
    cache.truncate(two, 20)
    assert cache.reserve(two, 21)
    batch = Batch.of([Chunk([90], 20, two)], cache)
    kv = cache.update(0, draw(1, 8), draw(1, 9), batch)
    assert torch.equal(cache.keys[:, cache.slots[one].blocks], before)
    for got, old, fresh in zip(kv[0], (draw(33, 3), draw(33, 53)), (draw(1, 8), draw(1, 9))):
        assert torch.equal(got[:20], old[:20]) and torch.equal(got[20:], fresh)
    cache.pool.check()


def test_tokens_taken_back_and_replaced_are_not_found_under_their_old_text():
    cache = PagedCache(TINY, D64, "cpu", n_blocks=12)
    ids = list(range(40))
    (slot,), _ = fill([cache], ids, 3)
    cache.truncate(slot, 20)
    assert cache.reserve(slot, 32)
    cache.commit(slot, [70] * 12)
    assert cache.open(ids, 50)[1] == 16
    assert cache.open([*ids[:20], *[70] * 12, 1], 50)[1] == 32


def test_where_no_block_is_free_nothing_changes():
    cache = PagedCache(TINY, D64, "cpu", n_blocks=5)
    (slot,), _ = fill([cache], list(range(40)), 3)
    other, _ = cache.open([60], 9)
    assert not cache.reserve(slot, 49)
    with pytest.raises(OutOfMemory, match="no free blocks for 5 tokens: 0 of 4"):
        cache.open(range(70, 75), 9)
    assert cache.pool.n_held == 4 and list(cache.slots) == [slot, other]
    cache.close(slot), cache.close(other)
    assert cache.nbytes == 0


def test_a_request_that_finds_its_beginning_and_no_room_for_the_rest_holds_nothing():
    cache = PagedCache(TINY, D64, "cpu", n_blocks=5)
    ids = list(range(33))
    (slot,), _ = fill([cache], ids, 3)
    cache.close(slot)
    cache.open([60] * 20, 32)
    with pytest.raises(OutOfMemory, match="no free blocks for 49 tokens: 2 of 4"):
        cache.open([*ids, *[61] * 16], 60)
    assert cache.pool.n_held == 2
    cache.pool.check()


def test_a_request_larger_than_the_pool_is_told_at_once_and_why():
    cache = PagedCache(TINY, D64, "cpu", n_blocks=4)
    with pytest.raises(OutOfMemory, match="49 tokens need 4 blocks of 16, and the pool has 3"):
        cache.open([1], 49)


def test_its_bytes_are_those_of_whole_blocks():
    cache = PagedCache(TINY, D64, "cpu", n_blocks=6)
    fill([cache], list(range(17)), 3)
    per_block = 2 * TINY.n_layers * TINY.n_kv_heads * TINY.head_dim * 8 * 16
    assert cache.nbytes == cache.bytes_for(17) == 2 * per_block
    assert cache.pool_bytes == 6 * per_block == sum(t.numel() * 8 for t in (cache.keys, cache.values))


def test_its_spec_counts_the_blocks_that_can_be_given_out():
    assert make_cache("paged:7", TINY, D64, "cpu").pool.n_free == 7
    assert parse_spec("paged") == ("paged", {})
    with pytest.raises(ValueError, match="paged:0"):
        parse_spec("paged:0")


def test_tokens_taken_back_give_their_blocks_back():
    cache = PagedCache(TINY, D64, "cpu", n_blocks=12)
    (slot,), _ = fill([cache], list(range(40)), 3)
    cache.truncate(slot, 16)
    assert cache.pool.n_held == 1 and len(cache.slots[slot].blocks) == 1
    cache.pool.check()


def test_a_larger_score_in_a_later_tile_shrinks_the_sum_of_those_before():
    cache = PagedCache(TINY, D64, "cpu", n_blocks=40)
    ids = [1] * 299
    slot, _ = cache.open(ids, 310)
    k = draw(299, 1) * torch.linspace(0.1, 3, 299, dtype=D64)[:, None, None]  # later keys score higher, and lower
    cache.update(0, k, draw(299, 2), Batch.of([Chunk(ids, 0, slot)], cache))
    assert cache.reserve(slot, 300)
    batch = Batch.of([Chunk([1], 299, slot)], cache)
    kv = cache.update(0, draw(1, 3), draw(1, 4), batch)
    q = draw(1, 5, TINY.n_heads)
    torch.testing.assert_close(REFERENCE.attend(q, kv, batch, 0.3), REFERENCE.attend(q, [kv[0]], batch, 0.3), rtol=0, atol=1e-12)
