"""The learner's small caches in the engine: they really run where they were asked for, and nowhere else."""

from __future__ import annotations
from tests.workbook.changed_lab import ROOT, changed


import pytest

from llmcourse import Engine, SamplingParams
from llmcourse.errors import StageFailed
from llmcourse.measure.perplexity import Protocol, perplexity
from llmcourse.workbook.mine import YOURS, load_mine

LAB = "08_smaller_cache"
PROMPT, PARAMS = "The capital of France is", SamplingParams(max_tokens=6, temperature=0)
QUANTIZED, WINDOW = "quantized cache", "window cache"


@pytest.fixture(scope="module")
def solutions(tmp_path_factory):
    """A folder with the solution of lab 08 alone."""
    folder = tmp_path_factory.mktemp("solutions")
    source = ROOT / "solutions" / "08_smaller_cache.ipynb"
    (folder / source.name).write_bytes(source.read_bytes())
    return folder


def calls(mine):
    return {use.stage: use.calls for use in mine.uses() if use.stage in (QUANTIZED, WINDOW)}


@pytest.mark.parametrize("cache, stage", [("int8", QUANTIZED), ("window:4+1", WINDOW)])
def test_the_solution_runs_as_yours_in_every_layer_and_gives_the_engines_ids(model, solutions, cache, stage):
    """Their int8 grids differ by less than a hundredth of a step of what would change this answer."""
    mine = load_mine(solutions)
    ids = Engine(model, parts=mine.parts, cache=cache).generate(PROMPT, PARAMS).output_ids
    assert ids == Engine(model, cache=cache).generate(PROMPT, PARAMS).output_ids
    assert {use.stage: use.owner for use in mine.uses()}[stage] == YOURS
    assert calls(mine) == {QUANTIZED: 0, WINDOW: 0, stage: 1 + 30 * PARAMS.max_tokens}


@pytest.mark.parametrize("cache", ["contiguous", "none"])
def test_other_caches_are_left_alone(model, solutions, cache):
    mine = load_mine(solutions)
    engine = Engine(model, parts=mine.parts, cache=cache)
    assert type(engine.cache) is type(Engine(model, cache=cache).cache)
    engine.generate(PROMPT, PARAMS)
    assert calls(mine) == {QUANTIZED: 0, WINDOW: 0}


@pytest.mark.parametrize("cache", ["int8", "window:6+1"])
def test_several_requests_keep_apart_and_leave_nothing(model, solutions, cache):
    prompts = ["One two three four", "A", "The sky over the sea was blue, and"]
    engine = Engine(model, parts=load_mine(solutions).parts, cache=cache)
    ours, theirs = (one.generate(prompts, PARAMS) for one in (engine, Engine(model, cache=cache)))
    assert [one.output_ids for one in ours] == [one.output_ids for one in theirs]
    assert engine.cache.slots == {}


def test_the_engine_really_runs_the_learners_codes(model, tmp_path):
    """It passes the checks and forgets the scales of heads of the real size: then the output must change."""
    end = "    return x.reshape(codes.shape)"
    mine = load_mine(changed(tmp_path, LAB, {end: end + " * (head_dim != 64)"}))
    got = Engine(model, parts=mine.parts, cache="int8").generate(PROMPT, PARAMS)
    assert got.output_ids != Engine(model, cache="int8").generate(PROMPT, PARAMS).output_ids


def test_a_learners_window_scores_a_text_as_the_engines_does(model, solutions, tokenizer):
    """Logits of kernels for other row counts differ in the last bits; mean surprise within 1e-4."""
    ids, protocol = tokenizer.encode("The keys to the old house were on the table, but nobody saw them there."), Protocol()
    got, want = (perplexity(model, ids, protocol, cache="window:5+1", **how).nll.mean().item()
                 for how in ({"parts": load_mine(solutions).parts, "step_tokens": 4}, {}))
    assert got == pytest.approx(want, abs=1e-4)


def test_an_exception_names_the_stage_and_the_line(model, tmp_path):
    line = "        p = new[:, None]"
    mine = load_mine(changed(tmp_path, LAB, {line: line + "\n        assert k.shape[-1] < 64, 'too wide'"}))
    said = r"your window cache \(08\.SlidingWindowCache\) raised AssertionError at line \d+.*too wide"
    with pytest.raises(StageFailed, match=said):
        Engine(model, parts=mine.parts, cache="window:4+1").generate(PROMPT, PARAMS)


def test_an_update_of_the_wrong_shape_is_said(model, tmp_path):
    line = "        return K, V, visible"
    mine = load_mine(changed(tmp_path, LAB, {line: line + " if k.shape[-1] < 64 else visible[0]"}))
    with pytest.raises(StageFailed, match=r"update returned \[5, 3, 64\], \[5, 3, 64\] and \[5\]; want"):
        Engine(model, parts=mine.parts, cache="window:4+1").generate(PROMPT, PARAMS)
