"""The contiguous cache: what is written is read, requests stay apart, memory stays in place."""

from __future__ import annotations

import pytest
import torch

from llmcourse.batch import Batch, Piece
from llmcourse.cache import ContiguousCache, NoCache
from llmcourse.errors import OutOfMemory
from tests.random_model import TINY


def draw(n, seed):
    return torch.randn(n, TINY.n_kv_heads, TINY.head_dim, generator=torch.Generator().manual_seed(seed))


def step(cache, layer, pieces, seed):
    batch = Batch.of([Piece([1] * n, past, slot) for n, past, slot in pieces])
    k, v = draw(batch.n_tokens, seed), draw(batch.n_tokens, seed + 1)
    return k, v, cache.update(layer, k, v, batch)


def test_requests_and_layers_stay_apart():
    cache = ContiguousCache(TINY, torch.float32, "cpu")
    a, b = cache.open(8), cache.open(5)
    k1, v1, _ = step(cache, 0, [(3, 0, a), (2, 0, b)], 1)
    step(cache, 1, [(3, 0, a), (2, 0, b)], 3)
    k2, v2, pairs = step(cache, 0, [(1, 2, b), (4, 3, a)], 5)
    assert torch.equal(pairs[0][0], torch.cat([k1[3:], k2[:1]])) and torch.equal(pairs[0][1], torch.cat([v1[3:], v2[:1]]))
    assert torch.equal(pairs[1][0], torch.cat([k1[:3], k2[1:]])) and torch.equal(pairs[1][1], torch.cat([v1[:3], v2[1:]]))


def test_memory_stays_in_place_within_the_capacity():
    cache = ContiguousCache(TINY, torch.float32, "cpu")
    slot = cache.open(6)
    pointers = {step(cache, 1, [(1, past, slot)], past)[2][0][0].data_ptr() for past in range(6)}
    assert len(pointers) == 1


def test_tokens_beyond_the_capacity_are_refused_before_anything_is_written():
    cache = ContiguousCache(TINY, torch.float32, "cpu")
    slot = cache.open(4)
    step(cache, 0, [(3, 0, slot)], 1)
    before = cache.slots[slot][0][0, :, :3].clone()
    with pytest.raises(ValueError, match="5 tokens do not fit into slot 0, opened for 4"):
        step(cache, 0, [(2, 3, slot)], 3)
    assert torch.equal(cache.slots[slot][0][0, :, :3], before)


def test_a_closed_slot_is_used_again_and_closing_twice_is_an_error():
    cache = ContiguousCache(TINY, torch.float32, "cpu")
    first, second = cache.open(3), cache.open(3)
    cache.close(first)
    assert cache.open(3) == first != second
    cache.close(second)
    with pytest.raises(KeyError):
        cache.close(second)


def test_bytes_are_counted_as_they_are_allocated():
    cache = ContiguousCache(TINY, torch.bfloat16, "cpu")
    slot = cache.open(7)
    allocated = sum(tensor.numel() * tensor.element_size() for tensor in cache.slots[slot])
    assert cache.bytes_for(7) == allocated == 2 * 3 * 2 * 10 * 7 * 2


def test_too_large_a_cache_names_the_bytes():
    cache = ContiguousCache(TINY, torch.float32, "cpu")
    with pytest.raises(OutOfMemory, match="480,000,000,000,000,000 bytes on cpu"):
        cache.open(10**15)


def test_without_a_cache_a_past_is_refused():
    with pytest.raises(ValueError, match="all 4 tokens must be computed, got the last 1"):
        step(NoCache(), 0, [(1, 3, 0)], 1)
