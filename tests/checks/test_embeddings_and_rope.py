"""Lab 02's reference against outside oracles: torch's own embedding and cosine, transformers' rotary embedding, float64."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given as drawn
from hypothesis import strategies as st

from llmcourse import given
from llmcourse.checks import Answer, lesson
from llmcourse.checks.embeddings_and_rope_inputs import FAR, THETAS
from llmcourse.checks.run import judge, run_probe

SHAPES = [(7, 3, 10, 7_000.0), (1, 9, 64, 100_000.0), (33, 2, 128, 500_000.0)]


@pytest.fixture(scope="module")
def lab():
    """The lab's own solutions."""
    return given.answer("02")


def test_embed_is_torchs_embedding_exactly(lab, model):
    ids = torch.randint(0, 49_152, (50,), generator=torch.Generator().manual_seed(0))
    assert torch.equal(lab.embed(ids, model.weights.embed), F.embedding(ids, model.weights.embed))


def test_nearest_ranks_the_real_table_as_torchs_cosine_similarity_does(lab, model):
    """Cosines within 1e-6; ids equal where neighbours in the ranking are further apart than that."""
    table = model.weights.embed
    for row in (253, 7_042, 30_000):
        ids, cosines = lab.nearest(table[row], table, 50)
        want, order = F.cosine_similarity(table, table[row][None], dim=1).sort(descending=True)
        assert (cosines - want[:50]).abs().max() < 1e-6 and ids[0] == row
        clear = (want[:50] - want[1:51] > 1e-6) & torch.cat([torch.tensor([True]), want[:49] - want[1:50] > 1e-6])
        assert clear.sum() > 40 and torch.equal(ids[clear], order[:50][clear])


@pytest.mark.parametrize("n, H, D, theta", SHAPES)
def test_rotation_is_that_of_transformers(lab, n, H, D, theta):
    """Both in float32, at positions up to 40,000: cos and sin within 5e-3 there, the turn itself within 1e-6."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    generator = torch.Generator().manual_seed(n)
    positions = torch.randint(0, FAR, (n,), generator=generator)
    q, k = torch.randn(2, n, H, D, generator=generator)
    config = LlamaConfig(hidden_size=H * D, num_attention_heads=H, head_dim=D, max_position_embeddings=FAR, rope_theta=theta)
    cos, sin = LlamaRotaryEmbedding(config)(q, positions[None])
    mine = lab.rope_angles(positions, D, theta)
    for ours, theirs in zip(mine, (cos, sin)):
        assert (ours - theirs[0, :, : D // 2]).abs().max() < 5e-3
    want_q, want_k = apply_rotary_pos_emb(q, k, cos[0], sin[0], unsqueeze_dim=1)
    halves = cos[0, :, : D // 2], sin[0, :, : D // 2]
    assert (lab.apply_rope(q, *halves) - want_q).abs().max() < 1e-6
    assert (lab.apply_rope(k, *halves) - want_k).abs().max() < 1e-6


@pytest.mark.parametrize("D", [22, 64, 128])
def test_angles_at_far_positions_are_within_float32s_error_of_float64(lab, D):
    """The bound of the probes, 5e-3: position · 2⁻²⁴ for the product, as much again for the speed."""
    positions = torch.arange(0, FAR + 1, 37)
    for theta in THETAS:
        exact = positions.double()[:, None] * theta ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
        cos, sin = lab.rope_angles(positions, D, theta)
        assert max((cos - exact.cos()).abs().max(), (sin - exact.sin()).abs().max()) < 5e-3


WAYS_TO_WRITE_THE_SPEEDS = {
    "a power with a negative exponent": lambda D, theta: theta ** (-torch.arange(0, D, 2).float() / D),
    "the exponential of a logarithm": lambda D, theta: torch.exp(
        -torch.arange(0, D, 2).float() * torch.log(torch.tensor(theta)) / D),
    "Python's own numbers": lambda D, theta: torch.tensor([theta ** (-2 * i / D) for i in range(D // 2)]),
    "float64": lambda D, theta: theta ** (-torch.arange(0, D, 2, dtype=torch.float64) / D),
}


@pytest.mark.parametrize("way", WAYS_TO_WRITE_THE_SPEEDS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_right_way_to_write_the_speeds_passes_every_probe(lab, way, seed):
    def rope_angles(positions, head_dim, theta):
        angles = positions[:, None] * WAYS_TO_WRITE_THE_SPEEDS[way](head_dim, theta)
        return angles.cos().float(), angles.sin().float()

    for probe in lesson("02").of("rope_angles"):
        got = run_probe(probe, Answer({"rope_angles": rope_angles}), seed)
        assert judge(probe, got, run_probe(probe, lab, seed)).ok, probe.name


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_angles_and_turn_with_complex_numbers_pass_every_probe(lab, seed):
    """Their real and imaginary parts are views with strides of their own."""
    def rope_angles(positions, head_dim, theta):
        angles = positions[:, None] * theta ** (-torch.arange(0, head_dim, 2) / head_dim)
        hands = torch.polar(torch.ones_like(angles), angles)
        return hands.real, hands.imag

    def apply_rope(x, cos, sin):
        turned = torch.complex(*x.float().chunk(2, dim=-1)) * torch.complex(cos, sin)[:, None]
        return torch.cat([turned.real, turned.imag], dim=-1).to(x.dtype)

    other = Answer({"rope_angles": rope_angles, "apply_rope": apply_rope})
    for probe in (*lesson("02").of("rope_angles"), *lesson("02").of("apply_rope")):
        assert judge(probe, run_probe(probe, other, seed), run_probe(probe, lab, seed)).ok, probe.name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("seed", range(1, 9))
def test_angles_or_speeds_in_half_precision_fail_whatever_the_seed(lab, dtype, seed):
    def product(positions, head_dim, theta):
        angles = positions.to(dtype)[:, None] * (theta ** (-torch.arange(0, head_dim, 2).float() / head_dim)).to(dtype)
        return angles.float().cos(), angles.float().sin()

    def speeds(positions, head_dim, theta):
        angles = positions[:, None] * (theta ** (-torch.arange(0, head_dim, 2).float() / head_dim)).to(dtype).float()
        return angles.cos(), angles.sin()

    far = next(probe for probe in lesson("02").of("rope_angles") if probe.name == "far_positions")
    want = run_probe(far, lab, seed)
    assert not any(judge(far, run_probe(far, Answer({"rope_angles": one}), seed), want).ok for one in (product, speeds))


@drawn(st.integers(0, 500), st.integers(0, 500), st.integers(0, 3_000))
def test_a_score_depends_on_the_distance_only(m, n, shift):
    """float64, 1e-9: the angles are float64 too, made by hand."""
    lab, generator = given.answer("02"), torch.Generator().manual_seed(m + 7 * n)
    q, k = torch.randn(2, 1, 1, 16, generator=generator, dtype=torch.float64)
    speeds = 500.0 ** (-torch.arange(0, 16, 2, dtype=torch.float64) / 16)

    def at(x, position):
        return lab.apply_rope(x, (position * speeds).cos()[None], (position * speeds).sin()[None])

    near, far = (at(q, m) * at(k, n)).sum(), (at(q, m + shift) * at(k, n + shift)).sum()
    assert abs(near - far) < 1e-9
