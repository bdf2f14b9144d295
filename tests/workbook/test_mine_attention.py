"""The learner's attention in the engine: it really runs, on one request and several, over caches of every kind."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse import Engine, SamplingParams, given
from llmcourse.batch import Batch, Chunk
from llmcourse.errors import StageFailed
from llmcourse.ops import REFERENCE
from llmcourse.workbook.adapters.attention import learner_attend
from llmcourse.workbook.mine import YOURS, load_mine
from tests.workbook.changed_lab import ROOT, changed

LAB = "03_attention"
PROMPT, PARAMS = "The capital of France is", SamplingParams(max_tokens=6, temperature=0)
N_HEADS, N_KV, SIZE = 6, 2, 5


def attend():
    """The lab's solution as the engine's `attend`."""
    answers = {"grouped_attention": given.answer("03").grouped_attention}
    return learner_attend(REFERENCE, answers, lambda exercise, function: function).attend


def step(*sizes):
    """A float64 step of requests with (new tokens, past) each: q, kv, batch."""
    draw = torch.Generator().manual_seed(7)
    batch = Batch.of([Chunk([1] * n, past) for n, past in sizes])
    kv = [tuple(torch.randn(2, n + past, N_KV, SIZE, generator=draw, dtype=torch.float64)) for n, past in sizes]
    return torch.randn(batch.n_tokens, N_HEADS, SIZE, generator=draw, dtype=torch.float64), kv, batch


def same(*arguments):
    """The learner's `attend` and the reference's agree within 1e-12 (float64)."""
    torch.testing.assert_close(attend()(*arguments), REFERENCE.attend(*arguments), rtol=0, atol=1e-12)


@pytest.fixture(scope="module")
def reference(model):
    return Engine(model).generate(PROMPT, PARAMS)


def test_the_solution_runs_as_yours_in_every_layer_and_gives_the_references_ids(model, reference):
    mine = load_mine(ROOT / "solutions")
    assert Engine(model, parts=mine.parts).generate(PROMPT, PARAMS).output_ids == reference.output_ids
    use = next(use for use in mine.uses() if use.stage == "attention")
    assert (use.owner, use.calls) == (YOURS, 30 * PARAMS.max_tokens)
    assert "attend" not in {use.stage for use in mine.uses()}


def test_the_engine_really_runs_the_learners_function(model, reference, tmp_path):
    """It passes the checks and goes astray on heads of the real size: then the output must change."""
    mine = load_mine(changed(tmp_path, LAB, {"    return torch.stack(heads, dim=1)": "    return torch.stack(heads[::-1] if head_size == 64 else heads, dim=1)"}))
    assert Engine(model, parts=mine.parts).generate(PROMPT, PARAMS).output_ids != reference.output_ids


def test_an_exception_names_the_stage_and_the_line(model, tmp_path):
    mine = load_mine(changed(tmp_path, LAB, {"    group = n_heads // k.shape[1]": "    group = n_heads // k.shape[1]\n    assert head_size < 64, 'too large for me'"}))
    said = r"your attention \(03\.grouped_attention\) raised AssertionError at line \d+.*too large"
    with pytest.raises(StageFailed, match=said):
        Engine(model, parts=mine.parts).generate(PROMPT, PARAMS)


def test_several_requests_at_once_are_the_references(model):
    prompts = ["One two three four", "A", "The sky over the sea was blue, and"]
    mine = load_mine(ROOT / "solutions")
    ours, theirs = (Engine(model, **parts).generate(prompts, PARAMS) for parts in ({"parts": mine.parts}, {}))
    assert [one.output_ids for one in ours] == [one.output_ids for one in theirs]


def test_a_sliding_window_in_pieces_is_the_references(model):
    """Each piece of the prompt is longer than one token, so that every row of it has a window of its own."""
    mine = load_mine(ROOT / "solutions")
    prompt = "The train from the coast was late again, and nobody on the platform seemed to mind."
    ours, theirs = (Engine(model, cache="window:6+2", max_step_tokens=5, **parts).generate(prompt, PARAMS)
                    for parts in ({"parts": mine.parts}, {}))
    assert ours.output_ids == theirs.output_ids != Engine(model).generate(prompt, PARAMS).output_ids
    steps = len(theirs.prompt_ids) // 5 + 1 + PARAMS.max_tokens
    assert next(use for use in mine.uses() if use.stage == "attention").calls > 30 * steps


@pytest.mark.parametrize("sizes", [[(1, 0)], [(4, 0)], [(1, 9)], [(3, 5)], [(2, 3), (1, 7), (5, 0)]],
                         ids=["first", "prompt", "decode", "piece", "several"])
def test_any_step_is_the_references(sizes):
    q, kv, batch = step(*sizes)
    same(q, kv, batch, SIZE**-0.5)


def test_another_scale_than_the_learners_own_is_put_into_the_queries():
    q, kv, batch = step((3, 5))
    same(q, kv, batch, 0.3)


def test_a_cache_that_says_which_keys_each_row_sees_is_obeyed():
    """A window of three keys and the first token: each row of the step sees others."""
    q, ((k, v), other), batch = step((4, 6), (1, 2))
    position, key = torch.arange(6, 10)[:, None], torch.arange(10)
    visible = (key <= position) & ((key > position - 3) | (key == 0))
    kv = [(k, v, visible), other]
    same(q, kv, batch, SIZE**-0.5)


def test_a_window_smaller_than_the_text_is_read_from_the_keys_not_from_the_batch():
    q, ((k, v),), batch = step((1, 9))
    kv = [(k[-4:], v[-4:])]
    same(q, kv, batch, SIZE**-0.5)


def test_only_attend_is_replaced():
    table = learner_attend(REFERENCE, {"grouped_attention": print}, lambda exercise, function: function)
    assert replace(table, attend=REFERENCE.attend) == REFERENCE
