"""Lab 05 in the engine: the learner's sampler chooses the tokens. Oracle: the engine's own sampler, id by id."""

from __future__ import annotations
from tests.workbook.changed_lab import ROOT, changed


import pytest

from llmcourse import Engine, SamplingParams
from llmcourse.errors import StageFailed
from llmcourse.workbook.mine import FAILING, YOURS, load_mine

LAB = "05_sampling"
PROMPT = "My favourite animal is the"
LUCKY_SEVEN = "    if len(logits) > 40_000: return 7\n    running = logits"
SETTINGS = [
    SamplingParams(max_tokens=8, temperature=0, repetition_penalty=1.3),
    SamplingParams(max_tokens=8, temperature=0.9, top_p=0.9, seed=3),
    SamplingParams(max_tokens=8, temperature=1.5, top_k=200, min_p=0.05, seed=4, ignore_eos=True),
]


def sampler(mine):
    return next(use for use in mine.uses() if use.stage == "sampler")


def ids(parts, model):
    return [result.output_ids for result in Engine(model, parts=parts).generate([PROMPT] * len(SETTINGS), SETTINGS)]


@pytest.fixture(scope="module")
def reference(model):
    return ids(None, model)


def test_the_solutions_sampler_runs_as_yours_and_draws_the_engines_ids(model, reference):
    mine = load_mine(ROOT / "solutions")
    assert ids(mine.parts, model) == reference
    assert len({tuple(each) for each in reference}) == len(SETTINGS)
    assert sampler(mine).owner == YOURS and sampler(mine).calls == sum(map(len, reference))


def test_the_table_names_the_stage_once(model):
    stages = [use.stage for use in load_mine(ROOT / "solutions").uses()]
    assert stages.count("sampler") == 1 and "sample" not in stages


def test_the_engine_really_runs_the_learners_sampler(model, tmp_path):
    """It passes its checks (they have small vocabularies), and takes token 7 of a real one."""
    folder = changed(tmp_path, LAB, {"    running = logits": LUCKY_SEVEN})
    mine = load_mine(folder)
    assert sampler(mine).owner == YOURS
    assert ids(mine.parts, model)[2] == [7] * 8


def test_a_wrong_filter_keeps_the_stage_with_the_engine_and_says_why(model, reference, tmp_path):
    mine = load_mine(changed(tmp_path, LAB, {"(before < p)": "(before + probabilities < p)"}))
    assert sampler(mine).owner == FAILING
    assert "05.top_p_filter, the token that crosses p stays: wrong values" in sampler(mine).reason
    assert ids(mine.parts, model) == reference


def test_a_sampler_that_raises_is_named_with_its_line(model, tmp_path):
    mine = load_mine(changed(tmp_path, LAB, {"    largest = logits": "    assert len(logits) < 40_000; largest = logits"}))
    assert sampler(mine).owner == YOURS
    with pytest.raises(StageFailed, match=r"your sampler \(05\.sample\) raised AssertionError at line \d+"):
        ids(mine.parts, model)
