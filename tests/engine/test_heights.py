"""A table may replace a stage, a whole layer or a whole step. Oracle: the engine with the reference table, float64."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest
import torch

from llmcourse import Engine, SamplingParams
from llmcourse.cache import ContiguousCache
from llmcourse.ops import CPU, REFERENCE
from llmcourse.ops.layer import layer
from tests.random_model import TINY, random_model

PROMPTS, PARAMS = [[5, 9, 2, 77, 31], [1], [8] * 9], SamplingParams(max_tokens=9, temperature=0)


@pytest.fixture(scope="module")
def tiny():
    return random_model()


@pytest.fixture(scope="module")
def expected(tiny):
    return ids(Engine(tiny, REFERENCE))


def ids(engine):
    return [result.output_ids for result in engine.generate(PROMPTS, PARAMS)]


class Prepared:
    """A table's own step: buffers and weights made once, and a whole batch in one call."""

    def __init__(self, model, cache, limits):
        self.model, self.cache, self.limits, self.batches = model, cache, limits, []

    def __call__(self, batch):
        self.batches.append(batch)
        return self.model.forward(batch, self.cache, REFERENCE)


def test_a_table_that_replaces_only_layer_runs_its_own_and_counts_nothing_twice(tiny, expected):
    seen = []

    def mine(x, weights, number, angles, batch, cache, parts, config):
        seen.append((number, batch.n_tokens))
        return layer(x, weights, number, angles, batch, cache, parts, config)

    parts, calls = replace(REFERENCE, layer=mine).counted()
    assert ids(Engine(tiny, parts)) == expected
    n_steps = PARAMS.max_tokens
    assert [number for number, _ in seen] == list(range(TINY.n_layers)) * n_steps and seen[0][1] == 15
    assert calls["attend"] == TINY.n_layers * n_steps and "layer" not in calls


def test_the_replaced_layer_is_what_the_answer_comes_from(tiny, expected):
    def wrong(x, *others):
        return layer(x, *others) * 1.5

    assert ids(Engine(tiny, replace(REFERENCE, layer=wrong))) != expected


def test_a_table_that_prepares_a_step_is_told_model_cache_and_limits_once(tiny, expected):
    made = []
    parts = replace(REFERENCE, prepare=lambda *args: made.append(Prepared(*args)) or made[-1], takes=frozenset({"contiguous"}))
    engine = Engine(tiny, parts, max_requests=2, max_step_tokens=4)
    assert ids(engine) == expected
    (step,) = made
    assert step.model is tiny and step.cache is engine.cache
    assert (step.limits.max_requests, step.limits.max_step_tokens, step.limits.max_context) == (2, 4, TINY.context)
    assert max(batch.n_tokens for batch in step.batches) == 4 and max(batch.n_requests for batch in step.batches) == 2


@pytest.mark.parametrize("takes", [frozenset(), frozenset({"paged"})], ids=str)
def test_a_step_is_not_asked_for_a_cache_that_it_does_not_take(tiny, expected, takes):
    def prepare(*_):
        raise AssertionError("asked")

    assert ids(Engine(tiny, replace(REFERENCE, prepare=prepare, takes=takes))) == expected


def test_a_table_may_decline_to_prepare(tiny, expected):
    parts = replace(REFERENCE, prepare=lambda *_: None, takes=frozenset({"contiguous"}))
    assert ids(Engine(tiny, parts)) == expected


def test_a_prepared_step_is_left_out_where_its_stages_are_watched(tiny, expected):
    parts = replace(REFERENCE, prepare=lambda *_: 1 / 0, takes=frozenset({"contiguous"}))
    counted, calls = parts.counted()
    assert ids(Engine(tiny, counted)) == expected and calls["attend"] > 0


def test_a_table_may_bring_its_own_cache(tiny, expected):
    class Own(ContiguousCache):
        kind = "own"

    def make_cache(spec, config, dtype, device):
        return Own(config, dtype, device) if spec == "contiguous" else None

    parts = replace(REFERENCE, make_cache=make_cache)
    engine = Engine(tiny, parts)
    assert isinstance(engine.cache, Own) and ids(engine) == expected
    assert Engine(tiny, parts, cache="none").cache.kind == "none"


def test_a_sampler_of_many_rows_chooses_for_all_and_one_bad_row_falls_back_to_sample(tiny, expected):
    rows = []

    def sample_rows(logits, params, us, previous):
        rows.append(len(logits))
        assert len(params) == len(us) == len(previous) == len(logits)
        if len(rows) == 3:
            raise ArithmeticError("one row is bad, who knows which")
        return logits.argmax(-1).tolist()

    assert ids(Engine(tiny, replace(REFERENCE, sample_rows=sample_rows))) == expected
    assert rows == [3] * PARAMS.max_tokens


def test_packed_weights_end_with_the_last_engine_that_uses_them():
    model = random_model(dtype=torch.float32)
    one, two = Engine(model, CPU), Engine(model, CPU)
    reordered = model.reordered(CPU.reorder)
    assert model.reordered(CPU.reorder) is reordered
    gone = weakref.ref(reordered)
    del reordered, one
    gc.collect()
    assert gone() is not None
    del two
    gc.collect()
    assert gone() is None


def test_values_may_be_wider_or_narrower_than_keys():
    """Every table, with a contiguous cache and without, in pieces: the same ids."""
    model = random_model(config=replace(TINY, v_head_dim=7))
    want = [result.output_ids for result in Engine(model, REFERENCE, cache="none").generate(PROMPTS, PARAMS)]
    for settings in (dict(parts=CPU), dict(max_step_tokens=3), dict(cache="window:64"), dict(parts=REFERENCE)):
        got = Engine(model, **settings).generate(PROMPTS, PARAMS)
        assert [result.output_ids for result in got] == want
    assert Engine(model).cache.bytes_for(1) == TINY.n_layers * TINY.n_kv_heads * (TINY.head_dim + 7) * 8
    with pytest.raises(ValueError, match="values as wide as keys, got 7 and 10"):
        Engine(model, cache="int8")


def test_scores_are_divided_by_the_root_of_the_keys_size_whatever_the_values_is():
    scales = []

    def attend(q, kv, batch, scale):
        scales.append(scale)
        return REFERENCE.attend(q, kv, batch, scale)

    random_model(config=replace(TINY, v_head_dim=7))([1, 2, 3], replace(REFERENCE, attend=attend))
    assert scales == [TINY.head_dim**-0.5] * TINY.n_layers
