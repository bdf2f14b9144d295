"""Lab 04's reference against outside oracles: transformers' Llama modules, tiny and real, and the engine."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm

from llmcourse import checks, given, load_model
from llmcourse.checks.rng import Rng
from llmcourse.checks.run import run_probe
from llmcourse.ops import CPU
from llmcourse.workbook.examine import examine
from tests.tiny_models import tiny_config, write_tiny

IDS = [7, 150, 3, 3, 88, 196, 41, 5, 60]


@pytest.fixture(scope="module")
def lab():
    """The lab's own solutions."""
    return given.answer("04")


def draw(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_norm_is_transformers_up_to_the_last_bit(lab, dtype):
    theirs = LlamaRMSNorm(37, eps=3e-3).to(dtype)
    theirs.weight.data = 1 + draw(37, seed=1, dtype=dtype)
    x = 5 * draw(11, 37, dtype=dtype)
    # Root and division here, reciprocal root and product there: three roundings of at most half a unit each on both sides.
    # One processor's rsqrt gives equal bits, another's is a unit away (2.4e-7 was seen).
    last_bit = 3 * torch.finfo(torch.float32).eps if dtype == torch.float32 else 0
    torch.testing.assert_close(lab.rms_norm(x, theirs.weight.data, 3e-3), theirs(x).detach(), rtol=last_bit, atol=0)


@torch.inference_mode()
def test_the_feed_forward_network_is_transformers(lab):
    """Bound: some hundred float32 additions of numbers up to 10."""
    theirs = LlamaMLP(tiny_config("llama"))
    x = draw(5, theirs.gate_proj.in_features)
    mine = lab.swiglu(x, theirs.gate_proj.weight, theirs.up_proj.weight, theirs.down_proj.weight)
    torch.testing.assert_close(mine, theirs(x), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["llama", "llama-gqa", "llama-tied"])
@torch.inference_mode()
def test_the_forward_pass_gives_transformers_logits_on_tiny_models(lab, kind, tmp_path):
    """Bound as in docs/parts.md: 1e-5."""
    theirs = write_tiny(tmp_path, kind)
    ours = load_model(tmp_path, device="cpu", dtype="float32")
    mine = lab.forward(IDS, ours.weights, ours.config)
    torch.testing.assert_close(mine, theirs(torch.tensor([IDS])).logits[0], rtol=0, atol=1e-5)


@torch.inference_mode()
def test_the_forward_pass_gives_transformers_logits_on_the_default_model(lab, model, tokenizer):
    """Bound as in docs/parts.md: 3e-4, mean 2e-5. transformers reads the converted folder, whose conversion from the GGUF
    is tested in tests/model/test_gguf.py."""
    ids = tokenizer.encode("The residual stream is a river: every layer reads from it, and every layer adds to it.")
    theirs = AutoModelForCausalLM.from_pretrained(model.source).float().eval()
    error = (lab.forward(ids, model.weights, model.config) - theirs(torch.tensor([ids])).logits[0]).abs()
    assert error.max() <= 3e-4 and error.mean() <= 2e-5


def test_counting_positions_from_1_changes_nothing_that_a_probe_could_see(model):
    """Why no wrong answer of the lab starts at 1: only distances survive in q·k. Bound: rounding of float32."""
    shifted = replace(CPU, rope_angles=lambda positions, *settings: CPU.rope_angles(positions + 1, *settings))
    ids = list(range(400, 440))
    assert (model(ids, parts=shifted) - model(ids)).abs().max() < 3e-4


@pytest.mark.parametrize("exercise", ["rms_norm", "swiglu", "block", "forward"])
def test_probes_see_new_inputs_with_every_seed(lab, exercise):
    lesson = checks.lesson("04")
    for probe in lesson.of(exercise):
        one, other = (run_probe(probe, lab, seed)["value"] for seed in (1, 2))
        assert one != other, probe.name


def test_the_probes_layer_has_heads_that_do_not_fill_the_width_and_norms_far_from_one():
    from llmcourse.checks.transformer_inputs import SQUARE, TINY, layer

    sizes = (TINY.width, TINY.n_heads * TINY.head_dim, TINY.n_kv_heads * TINY.head_dim, TINY.ffn_width, TINY.vocab_size)
    assert len(set(sizes)) == len(sizes) and SQUARE.n_heads * SQUARE.head_dim == SQUARE.width
    assert (layer(Rng(0, "a layer")).attn_norm - 1).abs().mean() > 0.5


def test_the_probes_inputs_have_the_names_of_a_real_model():
    from dataclasses import fields

    from llmcourse.checks.sizes import Sizes
    from llmcourse.checks.transformer_inputs import Layer, Model
    from llmcourse.model.config import ModelConfig
    from llmcourse.model.weights import LayerWeights, Weights

    for ours, real in ((Sizes, ModelConfig), (Layer, LayerWeights), (Model, Weights)):
        assert {one.name for one in fields(ours)} <= {one.name for one in fields(real)}


def other_norm(x, weight, eps):
    """The weight multiplied in float32, the root by rsqrt, the mean by a norm."""
    wide = x.float()
    scale = torch.rsqrt(torch.linalg.vector_norm(wide, dim=-1, keepdim=True) ** 2 / x.shape[-1] + eps)
    return (weight.float() * wide * scale).to(x.dtype)


def other_swiglu(x, w_gate, w_up, w_down):
    """With the library's silu and linear, and gate and up as one matrix."""
    both = torch.nn.functional.linear(x, torch.cat([w_gate, w_up]))
    gate, up = both.chunk(2, dim=-1)
    return torch.nn.functional.linear(torch.nn.functional.silu(gate) * up, w_down)


def other_block(x, weights, cos, sin, config):
    """Queries and keys through one matrix and turned together, the sums in place on a copy."""
    D, heads = config.head_dim, config.n_heads
    x = x.clone()
    h = other_norm(x, weights.attn_norm, config.rms_eps)
    qk = given.apply_rope((h @ torch.cat([weights.q, weights.k]).T).unflatten(-1, (-1, D)), cos, sin)
    mixed = given.grouped_attention(qk[:, :heads], qk[:, heads:], (h @ weights.v.T).unflatten(-1, (-1, D)), 0)
    x += mixed.flatten(1) @ weights.o.T
    x += other_swiglu(other_norm(x, weights.mlp_norm, config.rms_eps), weights.gate, weights.up, weights.down)
    return x


def other_forward(ids, weights, config):
    """Angles anew in every layer, counted from 1: the same distances."""
    x = torch.nn.functional.embedding(torch.tensor(ids), weights.embed)
    positions = torch.arange(1, len(ids) + 1)
    for layer in weights.layers:
        cos, sin = given.rope_angles(positions, config.head_dim, config.rope_theta)
        x = other_block(x, layer, cos, sin, config)
    return other_norm(x, weights.norm, config.rms_eps) @ (weights.embed if config.tied else weights.head).T


@pytest.mark.parametrize("answer", [other_norm, other_swiglu, other_block, other_forward], ids=lambda f: f.__name__)
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_another_right_answer_keeps_every_point(lab, answer, seed):
    name = answer.__name__.replace("other_norm", "rms_norm").removeprefix("other_")
    got = examine(checks.lesson("04"), name, lab.replaced(name, answer), lab, seed=seed, hidden=True)
    assert [verdict.as_json() for verdict in got.verdicts if not verdict.ok] == []
