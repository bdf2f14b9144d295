"""The CPU table against the reference table, and the reference against independent formulas."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from llmcourse.batch import Batch, Chunk
from llmcourse.ops import CPU, FUSED, REFERENCE, STAGES
from llmcourse.ops.reference import grouped_attention

FLOAT32_SUM = 2e-6  # a few hundred products of size one, summed in another order


def draw(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("eps", [1e-5, 3e-2])
@pytest.mark.parametrize("shape", [(7, 33), (5, 3, 11)])
def test_rms_norm_equals_the_reference(shape, eps):
    x, weight = draw(*shape), draw(shape[-1], seed=1)
    torch.testing.assert_close(CPU.rms_norm(x, weight, eps), REFERENCE.rms_norm(x, weight, eps), rtol=0, atol=FLOAT32_SUM)


@pytest.mark.parametrize("table", [REFERENCE, CPU], ids=["reference", "cpu"])
def test_rms_norm_of_zeros_is_zero_and_of_huge_values_finite(table):
    weight = torch.ones(8)
    assert table.rms_norm(torch.zeros(2, 8), weight, 1e-5).abs().max() == 0
    assert table.rms_norm(torch.full((2, 8), 1e18), weight, 1e-5).isfinite().all()


@pytest.mark.parametrize("table", [REFERENCE, CPU], ids=["reference", "cpu"])
def test_rms_norm_in_bfloat16_takes_its_statistics_in_float32(table):
    """Oracle: float64. Bound: two roundings to bfloat16 (2⁻⁸ relative each), which statistics in bfloat16 exceed."""
    x, weight = draw(64, 576) + 3, draw(576, seed=1)
    exact = REFERENCE.rms_norm(x.bfloat16().double(), weight.bfloat16().double(), 1e-5)
    out = table.rms_norm(x.bfloat16(), weight.bfloat16(), 1e-5).double()
    assert ((out - exact).abs() <= exact.abs() * 2**-7).all()


def test_swiglu_equals_the_reference_and_uses_the_given_linear():
    x, gate, up, down = draw(5, 12), draw(20, 12, seed=1), draw(20, 12, seed=2), draw(12, 20, seed=3)
    wanted = REFERENCE.swiglu(x, gate, up, down)
    torch.testing.assert_close(CPU.swiglu(x, gate, up, down), wanted, rtol=1e-5, atol=2e-5)
    calls = []

    def counting(x, W, bias=None):
        calls.append(tuple(W.shape))
        return REFERENCE.linear(x, W, bias)

    for table in (REFERENCE, CPU):
        table.swiglu(x, gate, up, down, counting)
    assert sorted(calls) == sorted(2 * [(20, 12), (20, 12), (12, 20)])


def attention_case(pieces, Hq=6, Hkv=2, D=10, dtype=torch.float32):
    batch = Batch.of([Chunk([1] * n, n_past=past) for n, past in pieces])
    q = draw(batch.n_tokens, Hq, D, dtype=dtype)
    kv = [(draw(T, Hkv, D, seed=r, dtype=dtype), draw(T, Hkv, D, seed=50 + r, dtype=dtype)) for r, T in enumerate(piece.length for piece in batch.chunks)]
    return q, kv, batch


@pytest.mark.parametrize(
    "pieces", [[(1, 0)], [(1, 40)], [(9, 0)], [(9, 4)], [(2, 1)], [(1, 12), (7, 0), (1, 0), (5, 3), (1, 99)]], ids=str
)
@pytest.mark.parametrize("Hq, Hkv", [(6, 2), (6, 6), (5, 1)])
def test_attend_equals_the_reference(pieces, Hq, Hkv):
    q, kv, batch = attention_case(pieces, Hq, Hkv)
    torch.testing.assert_close(
        CPU.attend(q, kv, batch, 0.31), REFERENCE.attend(q, kv, batch, 0.31), rtol=0, atol=FLOAT32_SUM
    )


def test_reference_attention_equals_a_loop_over_heads_and_positions():
    """Oracle: the definition, one query and one head at a time, in float64 (bound 1e-13)."""
    (q, [(k, v)], _) = attention_case([(5, 4)], dtype=torch.float64)
    out = grouped_attention(q, k, v, 0.27)
    for i in range(5):
        for head in range(6):
            seen, shared = i + 5, head // 3
            weights = (k[:seen, shared] @ q[i, head] * 0.27).exp()
            wanted = (weights[:, None] * v[:seen, shared]).sum(0) / weights.sum()
            torch.testing.assert_close(out[i, head], wanted, rtol=0, atol=1e-13)


@pytest.mark.parametrize("table", [REFERENCE, CPU], ids=["reference", "cpu"])
def test_decode_equals_the_last_row_of_prefill(table):
    q, kv, batch = attention_case([(9, 0)])
    one = Batch.of([Chunk([1], n_past=8)])
    torch.testing.assert_close(
        table.attend(q[-1:], kv, one, 0.31), table.attend(q, kv, batch, 0.31)[-1:], rtol=0, atol=FLOAT32_SUM
    )


def test_angles_at_late_positions_stay_close_to_float64():
    """Float32 angles are off by about position · 2⁻²⁴; twice that is the bound. bfloat16 would be off by radians."""
    positions, D, theta = torch.tensor([0, 1, 999, 16_000, 40_000]), 64, 100_000.0
    cos, sin = REFERENCE.rope_angles(positions, D, theta)
    exact = positions.double()[:, None] * theta ** (-torch.arange(0, D, 2).double() / D)
    bound = positions.double()[:, None] * 2**-23 + 1e-7
    assert ((cos - exact.cos()).abs() <= bound).all()
    assert ((sin - exact.sin()).abs() <= bound).all()


def test_rope_keeps_lengths_and_depends_on_the_distance_only():
    """Float32, |q|, |k| about 3: angles off by up to 5,000 · 2⁻²⁴ = 3e-4: bound 2e-3."""
    q, k = draw(1, 2, 16), draw(1, 2, 16, seed=1)
    products = []
    for shift in (0, 1, 17, 4_000):
        cos, sin = REFERENCE.rope_angles(torch.tensor([shift + 5, shift + 900]), 16, 500.0)
        rotated_q, rotated_k = REFERENCE.rope(q, cos[1:], sin[1:]), REFERENCE.rope(k, cos[:1], sin[:1])
        torch.testing.assert_close(rotated_q.norm(dim=-1), q.norm(dim=-1), rtol=1e-5, atol=0)
        products.append((rotated_q * rotated_k).sum(-1))
    for product in products[1:]:
        torch.testing.assert_close(product, products[0], rtol=0, atol=2e-3)


def test_linear_rope_scaling_stretches_positions():
    scaling = SimpleNamespace(kind="linear", factor=4.0)
    stretched = REFERENCE.rope_angles(torch.tensor([40]), 16, 500.0, scaling)
    plain = REFERENCE.rope_angles(torch.tensor([10]), 16, 500.0)
    torch.testing.assert_close(stretched[0], plain[0], rtol=0, atol=1e-5)


def test_counting_wraps_every_stage_and_changes_nothing():
    parts, calls = REFERENCE.counted()
    x = draw(3, 4)
    assert torch.equal(parts.rms_norm(x, torch.ones(4), 1e-5), REFERENCE.rms_norm(x, torch.ones(4), 1e-5))
    assert calls == {"rms_norm": 1}
    assert STAGES == ("embed", "rms_norm", "rope_angles", "rope", "linear", "attend", "swiglu", "sample")


@pytest.mark.parametrize("n, T", [(1, 9), (4, 9), (6, 6)])
@pytest.mark.parametrize("table", [REFERENCE, CPU], ids=["reference", "cpu"])
def test_a_third_element_of_kv_says_which_keys_each_row_sees(table, n, T):
    """Oracle: softmax over the marked keys alone, one query and one head at a time, in float64 (bound 1e-13)."""
    (q, [(k, v)], batch) = attention_case([(n, T - n)], dtype=torch.float64)
    visible = draw(n, T, seed=7) > 0.3
    visible[:, -1] = True
    out = table.attend(q, [(k, v, visible)], batch, 0.27)
    for i in range(n):
        for head in range(6):
            seen = visible[i]
            weights = (k[seen, head // 3] @ q[i, head] * 0.27).softmax(0)
            torch.testing.assert_close(out[i, head], weights @ v[seen, head // 3], rtol=0, atol=1e-13)


@pytest.mark.parametrize("table", [REFERENCE, CPU], ids=["reference", "cpu"])
def test_requests_with_and_without_a_mask_share_a_step(table):
    q, kv, batch = attention_case([(3, 4), (2, 0), (1, 5)])
    visible = torch.ones(3, 7, dtype=torch.bool).tril(4)
    torch.testing.assert_close(
        table.attend(q, [(*kv[0], visible), *kv[1:]], batch, 0.31), table.attend(q, kv, batch, 0.31), rtol=0, atol=FLOAT32_SUM
    )
