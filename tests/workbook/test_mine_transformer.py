"""Lab 04 in the engine: the learner's norm and feed-forward network really run, on plain weights.

Oracle: the engine's own greedy ids on the default model.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse import Engine, SamplingParams
from llmcourse.errors import StageFailed
from llmcourse.ops import CPU, REFERENCE, reference
from llmcourse.workbook.adapters.transformer import learner_block, learner_feed_forward, learner_norm
from llmcourse.workbook.layers import DIFFERS, OK, compared, functions_of
from llmcourse.workbook.mine import FAILING, YOURS, load_mine
from tests.random_model import TINY, random_model
from tests.workbook.changed_lab import ROOT, changed

PROMPT, PARAMS = "The capital of France is", SamplingParams(max_tokens=4, temperature=0)
LAB = "04_transformer"
FIRST_LINES = {"norm": "    wide = x.float()\n", "feed-forward": "    gate = x @ w_gate.T\n"}
EXERCISE = {"norm": "rms_norm", "feed-forward": "swiglu"}


@pytest.fixture(scope="module")
def expected(model):
    """The engine's own output."""
    return Engine(model).generate(PROMPT, PARAMS)


@pytest.fixture
def with_line(tmp_path):
    """A folder with the lab's solution, in which the first line of a stage's function has another one before it."""
    return lambda stage, line: changed(tmp_path, LAB, {FIRST_LINES[stage]: f"    {line}\n" + FIRST_LINES[stage]})


def generate(mine, model):
    return Engine(model, parts=mine.parts).generate(PROMPT, PARAMS)


def test_the_solutions_stages_run_as_yours_and_give_the_engines_ids(model, expected):
    mine = load_mine(ROOT / "solutions")
    assert generate(mine, model).output_ids == expected.output_ids
    uses = {use.stage: (use.owner, use.calls) for use in mine.uses()}
    assert uses["norm"] == (YOURS, 61 * PARAMS.max_tokens)
    assert uses["feed-forward"] == (YOURS, 30 * PARAMS.max_tokens)


@pytest.mark.parametrize("stage", ["norm", "feed-forward"])
def test_the_engine_really_runs_the_learners_stage(model, expected, with_line, stage):
    """It passes its checks, whose rows are short, and gives something else on the real model's."""
    mine = load_mine(with_line(stage, "x = x.flip(-1) if x.shape[-1] == 576 else x"))
    assert {use.stage: use.owner for use in mine.uses()}[stage] == YOURS
    assert generate(mine, model).output_ids != expected.output_ids


@pytest.mark.parametrize("stage", ["norm", "feed-forward"])
def test_an_exception_in_a_stage_is_named(model, with_line, stage):
    mine = load_mine(with_line(stage, "assert x.shape[-1] != 576, 'too wide'"))
    said = rf"your {stage} \(04\.{EXERCISE[stage]}\) raised AssertionError at line \d+ .*too wide"
    with pytest.raises(StageFailed, match=said):
        Engine(model, parts=mine.parts, cache="int8").generate(PROMPT, PARAMS)  # no block: the layer is made of stages


@pytest.mark.parametrize("stage", ["norm", "feed-forward"])
def test_a_stage_that_fails_its_checks_stays_the_engines(model, expected, with_line, stage):
    mine = load_mine(with_line(stage, "x = 2 * x + 1"))
    use = next(use for use in mine.uses() if use.stage == stage)
    assert use.owner == FAILING and f"04.{EXERCISE[stage]}" in use.reason
    assert generate(mine, model).output_ids == expected.output_ids


def test_the_feed_forward_network_gets_the_models_own_plain_weights_with_nothing_unpacked(model):
    seen = set()

    def swiglu(x, w_gate, w_up, w_down):
        seen.update(id(w) for w in (w_gate, w_up, w_down))
        return reference.swiglu(x, w_gate, w_up, w_down)

    parts = learner_feed_forward(CPU, {"swiglu": swiglu}, lambda exercise, function: function)
    Engine(model, parts=parts).generate(PROMPT, PARAMS)
    assert seen == {id(w) for layer in model.weights.layers for w in (layer.gate, layer.up, layer.down)}


def own_block(calls=None):
    """The table with lab 04's block, as a solution has it; `calls` collects the tokens that each call brought."""

    def block(x, w, cos, sin, config):
        if calls is not None:
            calls.append(len(x))
        n, h = len(x), reference.rms_norm(x, w.attn_norm, config.rms_eps)
        q, k, v = ((h @ matrix.T).view(n, -1, config.head_dim) for matrix in (w.q, w.k, w.v))
        q, k = reference.rope(q, cos, sin), reference.rope(k, cos, sin)
        x = x + reference.grouped_attention(q, k, v, config.head_dim**-0.5).flatten(1) @ w.o.T
        return x + reference.swiglu(reference.rms_norm(x, w.mlp_norm, config.rms_eps), w.gate, w.up, w.down)

    return learner_block(CPU, {"block": block}, lambda exercise, function: function)


@pytest.mark.parametrize(
    "settings", [dict(cache="none"), dict(), dict(max_step_tokens=3), dict(max_requests=1)], ids=str
)
def test_the_block_gives_the_engines_ids_with_a_cache_and_without(settings):
    """On the tiny model in float64: identical, several requests at once, prompts in pieces."""
    tiny, prompts, params = random_model(), [[5, 9, 2, 77], [1], [8] * 9], SamplingParams(max_tokens=12, temperature=0)
    want = [result.output_ids for result in Engine(tiny, REFERENCE).generate(prompts, params)]
    engine = Engine(tiny, own_block(), **settings)
    assert [result.output_ids for result in engine.generate(prompts, params)] == want
    assert not getattr(engine.cache, "slots", {})


def test_with_a_cache_the_block_computes_all_tokens_of_a_request_again():
    calls = []
    Engine(random_model(), own_block(calls)).generate([3, 1, 4], max_tokens=3, temperature=0)
    assert calls == [3] * TINY.n_layers + [4] * TINY.n_layers + [5] * TINY.n_layers


@pytest.mark.parametrize("changes", [dict(qkv_bias=True), dict(qk_norm=True), dict(windows=(4, None, 4))], ids=str)
def test_layers_that_the_block_does_not_know_are_composed_of_the_stages(changes):
    calls = []
    model = random_model(config=replace(TINY, **changes))
    want = Engine(model, CPU).generate([3, 1, 4, 1, 5, 9], max_tokens=3, temperature=0).output_ids
    assert Engine(model, own_block(calls)).generate([3, 1, 4, 1, 5, 9], max_tokens=3, temperature=0).output_ids == want
    assert calls == []


def test_a_block_says_how_it_was_used(tmp_path):
    mine = load_mine(changed(tmp_path, LAB, {}))
    use = lambda: next(use for use in mine.uses() if use.stage == "block")  # noqa: E731
    assert use().owner == YOURS and use().reason == ""
    Engine(random_model(dtype=torch.float32), mine.parts).generate([3, 1, 4], max_tokens=2, temperature=0)
    assert use().calls == 2 * TINY.n_layers and "computes all tokens again" in use().reason


def test_a_cache_of_the_learners_own_is_used_although_there_is_a_block():
    mine = load_mine(ROOT / "solutions")
    Engine(random_model(dtype=torch.float32), mine.parts).generate([3, 1, 4], max_tokens=2, temperature=0)
    calls = {use.stage: use.calls for use in mine.uses()}
    assert calls["block"] == 0 and calls["cache"] > 0


@pytest.mark.parametrize("base", [CPU, REFERENCE], ids=lambda table: table.name)
def test_both_stages_work_on_every_table(base):
    model, ids = random_model(), [3, 50, 7, 12]
    answers = {"rms_norm": reference.rms_norm, "swiglu": lambda x, gate, up, down: reference.swiglu(x, gate, up, down)}
    parts = learner_norm(learner_feed_forward(base, answers, lambda _, f: f), answers, lambda _, f: f)
    assert (model(ids, parts=parts) - model(ids, parts=REFERENCE)).abs().max() < 1e-12


def test_compare_layers_takes_the_table_of_load_mine(model, with_line):
    right = load_mine(ROOT / "solutions").parts
    wrong = load_mine(with_line("norm", "x = x.flip(-1) if x.shape[-1] == 576 else x")).parts
    ids = [1, 504, 3575]
    assert {row.status for row in compared(functions_of(right), model, ids)} == {OK}
    *_, last = compared(functions_of(wrong), model, ids)
    assert (last.layer, last.stage, last.status) == (0, "norm before attention", DIFFERS)
