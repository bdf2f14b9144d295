"""Quantized caches: error at most half a step, constants exact, bytes as few as promised, the same codes for any split."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llmcourse.batch import Batch, Chunk
from llmcourse.cache import QuantizedCache, Scheme, make_cache
from llmcourse.cache.codes import pack, unpack
from llmcourse.cache.coded import dequantize, quantize
from llmcourse.cache.quantized import TAIL
from llmcourse.ops import CPU, REFERENCE
from tests.caches import opened
from tests.random_model import TINY, random_model

SPECS = ["int8", "int4", "int8:channel/16", "int4:channel/8", "int4:token/5", "int4:token/2", "int8:token/10"]
IDS = torch.randint(0, TINY.vocab_size, (61,), generator=torch.Generator().manual_seed(3)).tolist()


@pytest.fixture(scope="module")
def tiny():
    return random_model()


def draw(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def make(spec, dtype=torch.float64, config=TINY):
    return make_cache(spec, config, dtype, "cpu")


def through_the_cache(model, cache, ids, pieces, parts=CPU):
    """Logits of all ids, computed in pieces of the given sizes."""
    slot, logits, start = opened(cache, len(ids)), [], 0
    for n in pieces:
        batch = Batch.of([Chunk(ids[start : start + n], start, slot, n_sample=n)])
        logits.append(model.forward(batch, cache, parts))
        start += n
    return torch.cat(logits)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("block, group", [(1, 16), (1, 4), (8, 1), (4, 2)])
@pytest.mark.parametrize("offset, size", [(0, 1), (30, 1), (-3, 1e-4), (0, 1e6)])
def test_an_error_is_at_most_half_a_scale(bits, block, group, offset, size):
    x = draw(3, 24, 16) * size + offset
    codes, scale, low = quantize(x, bits, block, group)
    half = scale.float().repeat_interleave(block, 1).repeat_interleave(group, 2) / 2
    error = (dequantize(codes, scale, low, block, group) - x).abs()
    assert (error <= half * 1.0001 + 2e-7 * x.abs().max()).all()
    assert codes.max() <= 2**bits - 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e-30, 6e4])
@pytest.mark.parametrize("block, group", [(1, 16), (8, 1)])
def test_a_constant_group_is_exact(dtype, value, block, group):
    x = torch.full((2, 8, 16), value, dtype=dtype)
    assert torch.equal(dequantize(*quantize(x, 4, block, group), block, group), x)


@given(st.integers(0, 2**31), st.sampled_from([4, 8]), st.sampled_from([(1, 8), (4, 1), (2, 4)]), st.floats(-30, 30))
@settings(max_examples=60)
def test_quantizing_again_changes_little_and_never_leaves_the_range(seed, bits, shape, log_size):
    """Float32: sizes from 2⁻³⁰ to 2³⁰. A second round moves a value by half a step at the most; nothing overflows."""
    x = draw(2, 8, 8, seed=seed) * 2.0**log_size
    codes, scale, low = quantize(x, bits, *shape)
    once = dequantize(codes, scale, low, *shape)
    again = dequantize(*quantize(once, bits, *shape), *shape)
    span = x.max() - x.min()
    assert once.isfinite().all() and (again - once).abs().max() <= span / (2**bits - 1)


@pytest.mark.parametrize("bits", [8, 4])
def test_packing_is_undone_exactly_and_halves_the_bytes_of_4_bits(bits):
    codes = torch.randint(0, 2**bits, (2, 3, 10), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    packed = pack(codes, bits)
    assert torch.equal(unpack(packed, bits), codes) and packed.numel() * 8 == codes.numel() * bits


@pytest.mark.parametrize("parts", [REFERENCE, CPU], ids=["reference", "cpu"])
@pytest.mark.parametrize("spec", SPECS)
def test_any_split_of_a_text_gives_the_same_logits(tiny, spec, parts):
    """Float64, bound 1e-12: the same codes, sums in another order. Oracle: token by token, which needs no mask."""
    wanted = through_the_cache(tiny, make(spec), IDS, [1] * 61, REFERENCE)
    for pieces in ([61], [2] * 30 + [1], [7] * 8 + [5], [31, 30], [32, 1, 28], [33, 28], [40, 1, 1, 19], [63 - 31, 29]):
        got = through_the_cache(tiny, make(spec), IDS, pieces, parts)
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("spec", ["int4", "int4:channel/8", "int4:token/5", "int8:channel/16"])
@pytest.mark.parametrize("pieces", [[90], [1] * 90, [50, 40], [31, 33, 26]])
def test_codes_depend_on_the_tokens_alone(spec, pieces):
    """Given the same keys and values, every split stores the same bytes."""
    k, v = draw(90, TINY.n_kv_heads, TINY.head_dim), draw(90, TINY.n_kv_heads, TINY.head_dim, seed=1)
    stored = []
    for sizes in ([90], pieces):
        cache = make(spec, torch.float32)
        slot, start = opened(cache, 90), 0
        for n in sizes:
            cache.update(0, k[start : start + n], v[start : start + n], Batch.of([Chunk([1] * n, start, slot)]))
            start += n
        n = cache.scheme.n_quantized(90)
        kept = cache.slots[slot]
        codes = [part.codes[0, :, :n] for part in (kept.keys, kept.values)]
        stored.append([*codes, kept.keys.low[0, :, : n // cache.scheme.block]])
    assert n > 0 and all(torch.equal(one, other) for one, other in zip(*stored))


def test_the_newest_tokens_and_the_unfinished_block_are_seen_as_they_were():
    cache = make("int4:channel/16", torch.float32)
    slot, k = opened(cache, 100), draw(71, TINY.n_kv_heads, TINY.head_dim)
    cache.update(0, k[:70], k[:70], Batch.of([Chunk([1] * 70, 0, slot)]))
    ((K, V),) = cache.update(0, k[70:], k[70:], Batch.of([Chunk([1], 70, slot)]))
    quantized = (71 - TAIL) // 16 * 16
    assert torch.equal(K[quantized:], k[quantized:]) and torch.equal(V[quantized:], k[quantized:])
    assert not torch.isclose(K[:quantized], k[:quantized], rtol=0, atol=1e-4).all() and K.shape == k.shape


def test_keys_per_channel_are_grouped_over_tokens_and_values_over_channels():
    """A channel that never changes is exact among keys, however large; a token of one value is exact among values."""
    cache = make("int4:channel/16", torch.float32)
    k = draw(60, TINY.n_kv_heads, TINY.head_dim)
    k[:, :, 3], v = 250.0, draw(60, TINY.n_kv_heads, TINY.head_dim, seed=2)
    v[5] = -3.0
    slot = opened(cache, 60)
    cache.update(0, k[:59], v[:59], Batch.of([Chunk([1] * 59, 0, slot)]))
    ((K, V),) = cache.update(0, k[59:], v[59:], Batch.of([Chunk([1], 59, slot)]))
    assert torch.equal(K[:, :, 3], k[:, :, 3]) and (K - k).abs().max() < 0.3
    assert torch.equal(V[5], v[5]) and not torch.equal(V[:16], v[:16])


@pytest.mark.parametrize("spec", SPECS)
def test_bytes_are_counted_as_they_are_held(spec):
    """Filled to its capacity, what is held beyond the count is room for tokens that are not quantized yet."""
    cache = make(spec, torch.float32)
    slot = opened(cache, 96)
    for layer in range(TINY.n_layers):
        k = draw(96, TINY.n_kv_heads, TINY.head_dim)
        cache.update(layer, k, k, Batch.of([Chunk([1] * 96, 0, slot)]))
    ring = cache.slots[slot].ring
    unquantized = 96 - cache.scheme.n_quantized(96)
    free = ring[..., : ring.shape[3] - unquantized, :].numel() * ring.element_size()
    assert cache.nbytes - free == cache.bytes_for(96)


@pytest.mark.parametrize(
    "spec, at_most", [("int8", 0.28), ("int4:channel/32", 0.19), ("int4:token/16", 0.23), ("int4:token/64", 0.15)]
)
def test_a_long_text_takes_the_promised_share_of_float32(spec, at_most):
    """Heads of 64 channels, float32: 4 bits and 48 for a group of 32 are 5.5 of 32; the unquantized end fades."""
    small, whole = (make(one, torch.float32, replace(TINY, head_dim=64)) for one in (spec, "contiguous"))
    assert small.bytes_for(8_192) / whole.bytes_for(8_192) < at_most


def test_memory_grows_with_the_tokens_and_not_with_the_capacity():
    cache = make("int8", torch.float32)
    slot = opened(cache, 1_000_000, 100)
    k = draw(100, TINY.n_kv_heads, TINY.head_dim)
    for layer in range(TINY.n_layers):
        cache.update(layer, k, k, Batch.of([Chunk([1] * 100, 0, slot)]))
    assert cache.nbytes == cache.bytes_for(100)
    assert cache.reserve(slot, 101)
    for layer in range(TINY.n_layers):
        cache.update(layer, k[:1], k[:1], Batch.of([Chunk([1], 100, slot)]))
    assert cache.nbytes == cache.bytes_for(200)


@pytest.mark.parametrize("spec", SPECS)
def test_what_was_in_memory_before_never_shows(tiny, monkeypatch, spec):
    empty = torch.empty

    def dirty(*args, **settings):
        tensor = empty(*args, **settings)
        return tensor.fill_(float("nan") if tensor.is_floating_point() else 255)

    monkeypatch.setattr(torch, "empty", dirty)
    for pieces in ([61], [1] * 61, [5, 20, 36]):
        assert through_the_cache(tiny, make(spec), IDS, pieces).isfinite().all()


@pytest.mark.parametrize("spec", ["int8", "int4:channel/8"])
def test_requests_in_one_step_stay_apart(tiny, spec):
    cache = make(spec)
    a, b = opened(cache, 61), opened(cache, 61)
    tiny.forward(Batch.of([Chunk(IDS[:50], 0, a), Chunk(IDS[20:23], 0, b)]), cache, CPU)
    both = tiny.forward(Batch.of([Chunk(IDS[23:60], 3, b, n_sample=37), Chunk(IDS[50:51], 50, a)]), cache, CPU)
    torch.testing.assert_close(both[:37], through_the_cache(tiny, make(spec), IDS[20:60], [40])[3:], rtol=0, atol=1e-12)
    torch.testing.assert_close(both[37:], through_the_cache(tiny, make(spec), IDS[:51], [51])[50:], rtol=0, atol=1e-12)


def test_tokens_beyond_the_capacity_are_refused():
    cache = QuantizedCache(TINY, torch.float32, "cpu", Scheme(bits=8))
    slot = opened(cache, 4)
    k = draw(5, TINY.n_kv_heads, TINY.head_dim)
    with pytest.raises(ValueError, match="5 tokens do not fit into slot 0, opened for 4"):
        cache.update(0, k, k, Batch.of([Chunk([1] * 5, 0, slot)]))


def test_fewer_bits_lose_more(tiny):
    """The order that the lesson relies on, on random weights: mean error of the logits against full precision."""
    whole = tiny(IDS, REFERENCE)
    specs = ("int8:token/5", "int4:token/5")
    few, fewer = ((through_the_cache(tiny, make(spec), IDS, [61]) - whole).abs().mean() for spec in specs)
    assert 0 < few < fewer / 5
