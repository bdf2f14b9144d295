"""Lab 08's reference against outside oracles: PyTorch's own quantization and masked attention, and the engine's caches."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given as drawn
from hypothesis import strategies as st

from llmcourse import given
from llmcourse.batch import Batch, Chunk
from llmcourse.cache import SlidingWindowCache
from llmcourse.checks.rng import Rng
from llmcourse.checks.smaller_cache_inputs import attended, held, spread
from llmcourse.ops import REFERENCE
from tests.caches import opened
from tests.random_model import TINY


@pytest.fixture(scope="module")
def lab():
    """The lab's own solutions."""
    return given.answer("08")


def torchs(x, bits):
    """Scale, zero point and rounded numbers of one group, by PyTorch's formulas for affine quantization."""
    most = 2**bits - 1
    low, high = min(x.min().item(), 0.0), max(x.max().item(), 0.0)
    scale = (high - low) / most
    zero = int(torch.round(torch.tensor(-low / scale)))
    return scale, zero, torch.fake_quantize_per_tensor_affine(x, scale, zero, 0, most)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group", [4, 6, 12])
def test_codes_and_their_way_back_are_pytorchs_fake_quantization(lab, bits, group):
    """Float32; inputs well inside their steps, so that no rounding of the last bit decides."""
    x = spread(Rng(3, f"{bits}/{group}"), 5, 3, 12, bits=bits, group=group, size=2.5)
    codes, scale, zero = lab.quantize_kv(x, bits, group)
    back = lab.dequantize_kv(codes, scale, zero, group)
    for t in range(5):
        for head in range(3):
            for g in range(12 // group):
                part = slice(g * group, (g + 1) * group)
                want_scale, want_zero, want = torchs(x[t, head, part], bits)
                assert scale[t, head, g].item() == pytest.approx(want_scale, rel=1e-6)
                assert zero[t, head, g].item() == want_zero
                torch.testing.assert_close(back[t, head, part], want, rtol=1e-5, atol=1e-6)


@drawn(st.integers(0, 2**31), st.sampled_from([4, 8]), st.sampled_from([1, 2, 8]), st.floats(-20, 20))
def test_an_error_is_at_most_half_a_scale_and_a_zero_is_exact(seed, bits, group, log_size):
    lab, x = given.answer("08"), Rng(seed, "x").normal(3, 2, 8) * 2.0**log_size
    x[1, 0] = 0
    codes, scale, zero = lab.quantize_kv(x, bits, group)
    back = lab.dequantize_kv(codes, scale, zero, group)
    assert ((back - x).abs() <= scale.repeat_interleave(group, -1) * 0.501).all()
    assert (back[x == 0] == 0).all() and int(codes.max()) < 2**bits


def test_a_cache_in_pieces_is_the_whole_text_quantized(lab):
    k, v = torch.randn(2, 30, 3, 8, generator=torch.Generator().manual_seed(2))
    cache = lab.QuantizedCache(4, 4)
    for piece in (slice(0, 11), slice(11, 12), slice(12, 30)):
        K, V = cache.update(5, k[piece], v[piece])
    for back, x in ((K, k), (V, v)):
        assert torch.equal(back, lab.dequantize_kv(*lab.quantize_kv(x, 4, 4), 4))


def test_what_the_probes_count_is_what_tensors_hold(lab):
    cache = lab.QuantizedCache(4, 8)
    cache.update(0, torch.randn(10, 2, 16), torch.randn(10, 2, 16))
    assert held(cache) == 2 * 10 * 2 * (16 // 2 + 2 * (4 + 1))
    cache.itself = cache
    assert held(cache) == 2 * 10 * 2 * (16 // 2 + 2 * (4 + 1))


@pytest.mark.parametrize("window, n_sink", [(6, 0), (6, 2), (1, 1), (3, 8)])
@pytest.mark.parametrize("excess", [-1, 0, 1, 20])
def test_a_window_is_pytorchs_masked_attention(lab, window, n_sink, excess):
    """Float64, bound 1e-12: the same terms in another order."""
    n = max(1, window + excess)
    k, v = torch.randn(2, n, 2, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    p, j = torch.arange(n)[:, None], torch.arange(n)
    mask = (j <= p) & ((j > p - window) | (j < n_sink))
    q, keys, values = (x.transpose(0, 1) for x in (k, k, v))
    want = F.scaled_dot_product_attention(q, keys, values, mask, scale=1.0).transpose(0, 1)
    for pieces in ([n], [1] * n, [n // 2, n - n // 2] if n > 1 else [1]):
        got = attended(lab.SlidingWindowCache(window, n_sink), 0, k, v, pieces)
        torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_a_window_sees_what_the_engines_sees(lab):
    """Float64, bound 1e-12."""
    q, k, v = torch.randn(3, 40, 2, 10, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    mine, ours = lab.SlidingWindowCache(7, 2), SlidingWindowCache(TINY, torch.float64, "cpu", 7, 2)
    slot, start = opened(ours, 40), 0
    for n in (4, 1, 12, 1, 1, 21):
        rows, batch = slice(start, start + n), Batch.of([Chunk([1] * n, start, slot)])
        want = REFERENCE.attend(q[rows], ours.update(1, k[rows], v[rows], batch), batch, 0.3)
        got = REFERENCE.attend(q[rows], [mine.update(1, k[rows], v[rows])], batch, 0.3)
        torch.testing.assert_close(got, want, rtol=0, atol=1e-12)
        start += n
