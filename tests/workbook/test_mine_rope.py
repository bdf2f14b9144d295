"""The learner's embedding and rotation in the engine: they really run; a model with a stretched context keeps our angles."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse import Engine, SamplingParams
from llmcourse.errors import StageFailed
from llmcourse.model.config import RopeScaling
from llmcourse.ops import REFERENCE
from llmcourse.workbook.adapters.embeddings_and_rope import learner_embed, learner_rope
from llmcourse.workbook.mine import FAILING, YOURS, load_mine
from tests.workbook.changed_lab import ROOT, changed

LAB = "02_embeddings_and_rope"
PROMPT, PARAMS = "The capital of France is", SamplingParams(max_tokens=6, temperature=0)
ANGLES, TURN = "    return angles.cos(), angles.sin()", "    a, b = x.chunk(2, dim=-1)"


def as_written(exercise, function):
    """A `use` that neither counts nor guards."""
    return function


@pytest.fixture(scope="module")
def reference(model):
    return Engine(model).generate(PROMPT, PARAMS)


def test_the_solutions_run_as_yours_and_give_the_references_ids(model, reference):
    mine = load_mine(ROOT / "solutions")
    assert Engine(model, parts=mine.parts).generate(PROMPT, PARAMS).output_ids == reference.output_ids
    uses = {use.stage: (use.owner, use.calls) for use in mine.uses()}
    assert uses["embed"] == (YOURS, PARAMS.max_tokens)
    assert uses["rope"] == (YOURS, (1 + 2 * 30) * PARAMS.max_tokens), "angles once, queries and keys in 30 layers, each step"
    assert "rope_angles" not in uses


@pytest.mark.parametrize("old, new", [
    (ANGLES, "    angles = angles if head_dim < 64 else -angles\n" + ANGLES),
    (TURN, "    x = x if x.shape[1:] != (3, 64) else x.flip(1)\n" + TURN),
    ("    return table[ids]", "    return table[ids if len(table) < 1_000 else ids.flip(0)]"),
], ids=["rope_angles", "apply_rope", "embed"])  # fmt: skip
def test_the_engine_really_runs_each_of_the_learners_functions(model, reference, tmp_path, old, new):
    """Each passes its checks and goes astray on the real model's sizes: then the output must change."""
    mine = load_mine(changed(tmp_path, LAB, {old: new}))
    assert {use.owner for use in mine.uses() if use.stage in ("embed", "rope")} == {YOURS}
    assert Engine(model, parts=mine.parts).generate(PROMPT, PARAMS).output_ids != reference.output_ids


def test_the_other_layout_fails_its_check_and_the_reference_runs(model, reference, tmp_path):
    other = "    a, b = x[..., 0::2], x[..., 1::2]"
    mine = load_mine(changed(tmp_path, LAB, {TURN: other}))
    use = next(use for use in mine.uses() if use.stage == "rope")
    assert use.owner == FAILING and "02.apply_rope, partners are half a head apart" in use.reason
    assert Engine(model, parts=mine.parts).generate(PROMPT, PARAMS).output_ids == reference.output_ids


def test_an_exception_names_the_stage_the_exercise_and_the_line(model, tmp_path):
    mine = load_mine(changed(tmp_path, LAB, {TURN: "    assert x.shape[-1] < 64, 'too large for me'\n" + TURN}))
    with pytest.raises(StageFailed, match=r"your rope \(02\.apply_rope\) raised AssertionError at line \d+.*too large"):
        Engine(model, parts=mine.parts).generate(PROMPT, PARAMS)


@pytest.mark.parametrize("scaling", [RopeScaling("linear", 4.0), RopeScaling("llama3", 8.0)], ids=["linear", "llama3"])
def test_a_stretched_context_keeps_the_engines_angles(scaling):
    answers = {"rope_angles": lambda *_: pytest.fail("the learner's angles know no scaling"), "apply_rope": REFERENCE.rope}
    given = torch.tensor([3, 9_000]), 8, 500.0, scaling
    ours, theirs = learner_rope(REFERENCE, answers, as_written).rope_angles(*given), REFERENCE.rope_angles(*given)
    assert all(map(torch.equal, ours, theirs))


def test_without_scaling_the_learners_angles_get_three_arguments():
    seen = []
    table = learner_rope(REFERENCE, {"rope_angles": lambda *given: seen.append(given), "apply_rope": print}, as_written)
    table.rope_angles("positions", 8, 500.0, None)
    assert seen == [("positions", 8, 500.0)]


def test_only_the_named_entries_are_replaced():
    table = learner_rope(REFERENCE, {"rope_angles": print, "apply_rope": print}, as_written)
    assert replace(table, rope=REFERENCE.rope, rope_angles=REFERENCE.rope_angles) == REFERENCE
    assert replace(learner_embed(REFERENCE, {"embed": print}, as_written), embed=REFERENCE.embed) == REFERENCE
