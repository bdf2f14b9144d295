"""The contiguous cache: what is written is read, requests stay apart, memory stays in place."""

from __future__ import annotations

import pytest
import torch

from llmcourse.batch import Batch, Chunk
from llmcourse.cache import ContiguousCache, NoCache
from llmcourse.errors import OutOfMemory
from tests.caches import opened
from tests.counting import HOST_READS, Counting
from tests.random_model import TINY


def draw(n, seed):
    return torch.randn(n, TINY.n_kv_heads, TINY.head_dim, generator=torch.Generator().manual_seed(seed))


def step(cache, layer, pieces, seed):
    batch = Batch.of([Chunk([1] * n, past, slot) for n, past, slot in pieces])
    assert all(cache.reserve(piece.slot, piece.length) for piece in batch.chunks)
    k, v = draw(batch.n_tokens, seed), draw(batch.n_tokens, seed + 1)
    return k, v, cache.update(layer, k, v, batch)


def test_requests_and_layers_stay_apart():
    cache = ContiguousCache(TINY, torch.float32, "cpu")
    a, b = opened(cache, 8, 1), opened(cache, 5, 1)
    k1, v1, _ = step(cache, 0, [(3, 0, a), (2, 0, b)], 1)
    step(cache, 1, [(3, 0, a), (2, 0, b)], 3)
    k2, v2, pairs = step(cache, 0, [(1, 2, b), (4, 3, a)], 5)
    assert torch.equal(pairs[0][0], torch.cat([k1[3:], k2[:1]])) and torch.equal(pairs[0][1], torch.cat([v1[3:], v2[:1]]))
    assert torch.equal(pairs[1][0], torch.cat([k1[:3], k2[1:]])) and torch.equal(pairs[1][1], torch.cat([v1[:3], v2[1:]]))


def test_memory_stays_in_place_within_what_is_reserved():
    cache = ContiguousCache(TINY, torch.float32, "cpu")
    slot = opened(cache, 6, 1)
    pointers = {step(cache, 1, [(1, past, slot)], past)[2][0][0].data_ptr() for past in range(6)}
    assert len(pointers) == 1


def rooms(cache, slot, n_tokens):
    """Decode n tokens; the room reserved after each of them."""
    reserved = []
    for past in range(n_tokens):
        for layer in range(TINY.n_layers):
            step(cache, layer, [(1, past, slot)], past)
        reserved.append(cache.slots[slot].reserved)
    return reserved


def test_room_doubles_up_to_the_capacity_and_no_further():
    cache = ContiguousCache(TINY, torch.float32, "cpu", first_tokens=2)
    assert rooms(cache, opened(cache, 11, 1), 11) == [2, 2, 4, 4, 8, 8, 8, 8, 11, 11, 11]


@pytest.mark.parametrize("n, reserved", [(3, 4), (5, 5), (9, 9)])
def test_a_prompt_longer_than_twice_the_room_gets_just_what_it_needs(n, reserved):
    cache = ContiguousCache(TINY, torch.float32, "cpu", first_tokens=2)
    slot = opened(cache, 20, 1)
    step(cache, 0, [(n, 0, slot)], 1)
    assert cache.slots[slot].reserved == reserved


@pytest.mark.parametrize("first_tokens", [1, 2, 3, 5])
def test_what_was_written_before_a_move_is_there_after_it(first_tokens):
    """Oracle: every layer's keys and values, concatenated in the test."""
    cache = ContiguousCache(TINY, torch.float32, "cpu", first_tokens=first_tokens)
    slot, kept = opened(cache, 13, 1), [[] for _ in range(TINY.n_layers)]
    for past in range(13):
        for layer in range(TINY.n_layers):
            k, v, pairs = step(cache, layer, [(1, past, slot)], 100 * layer + past)
            kept[layer].append((k, v))
            for got, want in zip(pairs[0], zip(*kept[layer])):
                assert torch.equal(got, torch.cat(want))


def test_a_growing_request_does_not_move_its_neighbour():
    cache = ContiguousCache(TINY, torch.float32, "cpu", first_tokens=2)
    still, growing = opened(cache, 2, 1), opened(cache, 9, 1)
    before = cache.slots[still].keys.data_ptr()
    step(cache, 0, [(1, 0, still), (7, 0, growing)], 1)
    assert cache.slots[still].keys.data_ptr() == before and cache.slots[growing].reserved == 7


def test_decode_within_the_room_does_the_same_work_at_any_length():
    """Counted: every operation of an update, and the numbers that it writes."""
    cache = ContiguousCache(TINY, torch.float32, "cpu", first_tokens=4096)
    slot, counts = opened(cache, 4096, 1), []
    for past in (1, 100, 4000):
        with Counting() as counting:
            step(cache, 1, [(1, past, slot)], 5)
        counts.append(counting.calls)
    assert counts[0] == counts[1] == counts[2]


def test_moves_copy_each_token_less_than_twice():
    cache = ContiguousCache(TINY, torch.float32, "cpu", first_tokens=1)
    slot, n = opened(cache, 1000, 1), 500
    with Counting() as counting:
        rooms(cache, slot, n)
    one_token = 2 * TINY.n_layers * TINY.n_kv_heads * TINY.head_dim
    written = counting.numbers("aten.copy_.default")
    assert n * one_token < written < 3 * n * one_token  # once when they come, less than twice in moves


def test_no_layer_waits_for_the_device():
    """A value that Python reads from a tensor would be a wait: none of the operations is such a read."""
    cache = ContiguousCache(TINY, torch.float32, "cpu", first_tokens=2)
    slot = opened(cache, 9, 1)
    with Counting() as counting:
        step(cache, 0, [(3, 0, slot)], 1)
        step(cache, 0, [(1, 3, slot)], 1)
    assert counting.calls and not {name for name, _ in counting.calls if name in HOST_READS}


def test_tokens_beyond_the_capacity_are_refused_before_anything_is_written():
    cache = ContiguousCache(TINY, torch.float32, "cpu")
    slot = opened(cache, 4, 1)
    step(cache, 0, [(3, 0, slot)], 1)
    before = cache.slots[slot].keys[0, :, :3].clone()
    with pytest.raises(ValueError, match="5 tokens do not fit into slot 0, opened for 4"):
        cache.reserve(slot, 5)
    with pytest.raises(ValueError, match="5 tokens do not fit into slot 0, opened for 4"):
        cache.update(0, draw(2, 3), draw(2, 4), Batch.of([Chunk([1, 1], 3, slot)]))
    assert torch.equal(cache.slots[slot].keys[0, :, :3], before)


def test_tokens_without_room_are_refused_since_an_update_never_allocates():
    cache = ContiguousCache(TINY, torch.float32, "cpu", first_tokens=3)
    slot = opened(cache, 9, 1)
    with pytest.raises(ValueError, match="4 tokens do not fit into slot 0, which has room for 3; `reserve` makes room"):
        cache.update(0, draw(4, 3), draw(4, 4), Batch.of([Chunk([1] * 4, 0, slot)]))


def test_a_closed_slot_is_used_again_and_closing_twice_is_an_error():
    cache = ContiguousCache(TINY, torch.float32, "cpu")
    first, second = opened(cache, 3, 1), opened(cache, 3, 1)
    cache.close(first)
    assert opened(cache, 3, 1) == first != second
    cache.close(second)
    with pytest.raises(KeyError):
        cache.close(second)


def test_bytes_are_counted_as_they_are_allocated():
    cache = ContiguousCache(TINY, torch.bfloat16, "cpu")
    slot = opened(cache, 7, 1)
    allocated = cache.slots[slot].keys.nbytes + cache.slots[slot].values.nbytes
    assert cache.bytes_for(7) == allocated == 2 * 3 * 2 * 10 * 7 * 2


def test_too_large_a_cache_names_the_bytes():
    cache = ContiguousCache(TINY, torch.float32, "cpu")
    cache.first_tokens = 10**15
    with pytest.raises(OutOfMemory, match="480,000,000,000,000,000 bytes on cpu"):
        opened(cache, 10**15, 1)


def test_growing_beyond_memory_is_refused_and_keeps_what_there_was():
    cache = ContiguousCache(TINY, torch.float32, "cpu", first_tokens=2)
    slot = opened(cache, 10**15, 1)
    _, _, before = step(cache, 0, [(2, 0, slot)], 1)
    assert cache.reserve(slot, 10**15) is False and cache.reserve(slot, 10**18 // 10**3) is False
    assert cache.slots[slot].reserved == 2 and torch.equal(cache.slots[slot].keys[0, :, :2].transpose(0, 1), before[0][0])


def test_without_a_cache_a_past_is_refused():
    with pytest.raises(ValueError, match="all 4 tokens must be computed, got the last 1"):
        step(NoCache(), 0, [(1, 3, 0)], 1)


def test_bytes_held_now_count_the_room_that_is_reserved():
    cache = ContiguousCache(TINY, torch.float32, "cpu", first_tokens=4)
    slot = opened(cache, 100, 1)
    assert cache.nbytes == cache.bytes_for(4)
    step(cache, 0, [(30, 0, slot)], 1)
    assert cache.nbytes == cache.bytes_for(30)
    cache.close(slot)
    assert cache.nbytes == 0
