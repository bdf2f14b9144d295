"""The debugger for forward passes: the first stage that differs is found, and it is the one that was broken.

Oracle: the reference table on a tiny random model in float64 (bound 1e-9), and errors planted by hand.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse.errors import CourseError
from llmcourse.ops import CPU, REFERENCE, reference
from llmcourse.workbook import compare_layers
from llmcourse.workbook.layers import DIFFERS, OK, RAISED, WRONG_SHAPE, WRONG_TYPE, compared, functions_of
from tests.random_model import TINY, random_model

IDS = [5, 3, 5, 81, 40, 7, 96]
STAGES_OF_A_LAYER = 6  # two norms, rope of q and of k, attention, feed-forward


@pytest.fixture(scope="module")
def tiny():
    """Three layers, float64."""
    return random_model()


def attention(q, k, v, n_past):
    """Attention as the labs have it."""
    return reference.grouped_attention(q, k, v, q.shape[-1] ** -0.5)


def block(x, w, cos, sin, config, residual=True):
    """A layer as the labs have it."""
    n, h = len(x), reference.rms_norm(x, w.attn_norm, config.rms_eps)
    q, k, v = ((h @ matrix.T).view(n, -1, config.head_dim) for matrix in (w.q, w.k, w.v))
    mixed = attention(reference.rope(q, cos, sin), reference.rope(k, cos, sin), v, 0)
    x = x * residual + mixed.flatten(1) @ w.o.T
    return x + reference.swiglu(reference.rms_norm(x, w.mlp_norm, config.rms_eps), w.gate, w.up, w.down)


def forward(ids, weights, config, last_norm=True):
    """The whole pass as the labs have it."""
    x = weights.embed[ids]
    cos, sin = reference.rope_angles(torch.arange(len(ids)), config.head_dim, config.rope_theta)
    for layer in weights.layers:
        x = block(x, layer, cos, sin, config)
    return (reference.rms_norm(x, weights.norm, config.rms_eps) if last_norm else x) @ weights.embed.T


RIGHT = {
    "embed": reference.embed, "rope_angles": reference.rope_angles, "rms_norm": reference.rms_norm,
    "apply_rope": reference.rope, "grouped_attention": attention, "swiglu": reference.swiglu, "block": block,
    "forward": forward,
}  # fmt: skip
BROKEN = {
    "embed": lambda ids, table: table[ids.flip(0)],
    "rope_angles": lambda positions, D, theta: reference.rope_angles(positions, D, 10_000.0),
    "rms_norm": lambda x, weight, eps: reference.rms_norm(x - x.mean(-1, keepdim=True), weight, eps),
    "apply_rope": lambda x, cos, sin: reference.rope(x, cos, -sin),
    "grouped_attention": lambda q, k, v, n_past: reference.grouped_attention(q, k, v, TINY.width**-0.5),
    "swiglu": lambda x, gate, up, down: reference.swiglu(x, up, gate, down),
    "block": lambda x, w, cos, sin, config: block(x, w, cos, sin, config, residual=False),
    "forward": lambda ids, weights, config: forward(ids, weights, config, last_norm=False),
}  # fmt: skip
FIRST_STAGE = {
    "embed": "embedding", "rope_angles": "angles", "rms_norm": "norm before attention", "apply_rope": "queries, turned",
    "grouped_attention": "attention", "swiglu": "feed-forward", "block": "the whole block",
    "forward": "the whole forward pass",
}  # fmt: skip


def rows_of(mine, model):
    return list(compared(functions_of(mine), model, IDS))


def test_right_functions_agree_at_every_stage(tiny):
    rows = rows_of(RIGHT, tiny)
    assert {row.status for row in rows} == {OK}
    assert len(rows) == 2 + TINY.n_layers * (STAGES_OF_A_LAYER + 1) + 2  # table, angles; layers; last norm, forward


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_function_is_found_where_it_is_first_used_and_nothing_before_it(tiny, name):
    *before, last = rows_of({**RIGHT, name: BROKEN[name]}, tiny)
    assert {row.status for row in before} <= {OK}
    assert (last.status, last.stage) == (DIFFERS, FIRST_STAGE[name])
    assert last.error > 1e-3 and "got" in last.detail and "want" in last.detail


def test_a_mistake_in_one_layer_is_blamed_on_that_layer(tiny):
    third = tiny.weights.layers[2].mlp_norm

    def wrong_once(x, weight, eps):
        return reference.rms_norm(x, weight, eps + (1.0 if weight is third else 0.0))

    *before, last = rows_of({**RIGHT, "rms_norm": wrong_once}, tiny)
    assert (last.layer, last.stage, last.status) == (2, "norm before feed-forward", DIFFERS)
    assert {row.status for row in before} == {OK}


def test_a_consequence_is_not_blamed(tiny):
    """The block calls a broken norm; where the norm is compared too, it is the norm that is named."""
    broken = BROKEN["rms_norm"]

    def with_broken_norm(x, w, cos, sin, config):
        return x + broken(x, w.attn_norm, config.rms_eps)

    assert rows_of({"block": with_broken_norm, "rms_norm": broken}, tiny)[-1].entry == "rms_norm"


@pytest.mark.parametrize("answer, status, detail", [
    (lambda x, weight, eps: x[0], WRONG_SHAPE, "got [30], want [7, 30]"),
    (lambda x, weight, eps: None, WRONG_TYPE, "got NoneType, want 1 tensor"),
    (lambda x, weight, eps: x.float(), WRONG_TYPE, "got torch.float32, want torch.float64"),
    (lambda x, weight, eps: x @ weight[:3], RAISED, "RuntimeError"),
    (lambda x, weight, eps: x * float("nan"), DIFFERS, "got nan"),
], ids=["shape", "none", "dtype", "raised", "nan"])  # fmt: skip
def test_what_is_no_result_is_said_in_words(tiny, answer, status, detail):
    row, = rows_of({"rms_norm": answer}, tiny)
    assert row.status == status and detail in row.detail


def test_one_of_two_tensors_wrong_is_found(tiny):
    row, = rows_of({"rope_angles": lambda *args: (reference.rope_angles(*args)[0],) * 2}, tiny)
    assert row.status == DIFFERS


def test_a_function_that_writes_into_its_input_does_not_spoil_the_others(tiny):
    def in_place(x, weight, eps):
        y = reference.rms_norm(x, weight, eps)
        x.zero_()
        return y

    assert {row.status for row in rows_of({**RIGHT, "rms_norm": in_place}, tiny)} == {OK}


def test_an_answer_still_to_be_written_raises_for_your_code_to_catch(tiny):
    def stub(x, weight, eps):
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        compare_layers({"rms_norm": stub}, tiny, IDS)


@pytest.mark.parametrize("mine", [{}, {"rmsnorm": reference.rms_norm}, None])
def test_what_cannot_be_compared_is_an_error_that_names_what_can(tiny, mine):
    with pytest.raises(CourseError, match="embed, rope_angles, rms_norm, apply_rope, grouped_attention, swiglu, block"):
        compare_layers(mine, tiny, IDS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_table_of_parts_is_compared_stage_by_stage(dtype):
    model = random_model(dtype=dtype)
    assert {row.status for row in rows_of(CPU, model)} == {OK}
    last = rows_of(replace(CPU, rope=BROKEN["apply_rope"]), model)[-1]
    assert (last.layer, last.entry, last.status) == (0, "rope", DIFFERS)


def test_a_table_s_linear_gets_what_its_pack_made(tiny):
    reordered = replace(REFERENCE, reorder=lambda W: ("reordered", W), linear=lambda x, W, bias=None: reference.linear(x, W[1], bias))
    rows = rows_of(reordered, tiny)
    assert {row.status for row in rows} == {OK} and "head" in {row.stage for row in rows}


def test_the_default_model_agrees_on_the_cpu_table_in_float32(model):
    """Bound 3e-4 of a row's root mean square; measured up to 5e-5 at 200 tokens."""
    rows = rows_of(CPU, model)
    assert {row.status for row in rows} == {OK} and {row.layer for row in rows} == {None, *range(30)}


def test_a_layer_that_agrees_is_one_line_and_the_first_and_the_differing_one_are_shown_in_full(tiny, capsys):
    third = tiny.weights.layers[2].gate
    compare_layers({"swiglu": lambda x, gate, up, down: reference.swiglu(x, gate, up, down) * (1 + (gate is third)),
                    "rms_norm": reference.rms_norm}, tiny, IDS)
    said = capsys.readouterr().out
    starts = [line[:38].strip() for line in said.splitlines() if line.startswith("layer")]
    assert starts == [
        "layer 0   norm before attention", "layer 0   norm before feed-forward", "layer 0   feed-forward",
        "layer 1   all 3 stages",
        "layer 2   norm before attention", "layer 2   norm before feed-forward", "layer 2   feed-forward",
    ]  # fmt: skip
    assert "The first difference: layer 2, feed-forward. Look at: silu on the gate" in said


def test_a_pass_without_a_difference_says_so(tiny, capsys):
    compare_layers({"rms_norm": reference.rms_norm}, tiny, IDS)
    assert f"All {2 * TINY.n_layers + 1} stages agree." in capsys.readouterr().out
