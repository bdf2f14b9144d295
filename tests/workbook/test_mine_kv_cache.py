"""The learner's cache in the engine. Oracle: the engine with its own parts, and the whole text anew for every token."""

from __future__ import annotations

import pytest
import torch

from llmcourse import Engine, SamplingParams
from llmcourse.errors import StageFailed
from llmcourse.ops import CPU
from llmcourse.workbook.adapters import LEARNER_STAGES
from llmcourse.workbook.adapters.kv_cache import LearnerCache
from llmcourse.workbook.mine import REFERENCE, YOURS, load_mine
from tests.caches import opened
from tests.random_model import random_model
from tests.workbook.changed_lab import ROOT, changed

LAB = "07_kv_cache"
PROMPTS = [[5, 9, 2, 77, 31, 8, 8, 60], [1], [96, 3, 50, 12, 41]]
GREEDY = SamplingParams(max_tokens=20, temperature=0)
STAGE = next(stage for stage in LEARNER_STAGES if stage.name == "cache")


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """Lab 07's solution alone in a folder."""
    return load_mine(changed(tmp_path_factory.mktemp("mine"), LAB, {}))


@pytest.fixture(scope="module")
def tiny():
    return random_model()


def cache_use(mine):
    return next(use for use in mine.uses() if use.stage == "cache")


def test_the_real_model_runs_on_the_learners_cache_and_gives_the_references_ids(model, tmp_path):
    mine, params = load_mine(changed(tmp_path, LAB, {})), SamplingParams(max_tokens=6, temperature=0)
    result = Engine(model, parts=mine.parts).generate("The capital of France is", params)
    assert result.output_ids == Engine(model).generate("The capital of France is", params).output_ids
    assert cache_use(mine).owner == YOURS
    assert cache_use(mine).calls == 1 + 6 * model.config.n_layers  # made once, then updated in every layer of every step


@pytest.mark.parametrize("settings", [dict(), dict(max_step_tokens=3), dict(max_requests=1)], ids=str)
def test_ids_in_float64_are_exact_whatever_the_arrangement(mine, tiny, settings):
    want = [result.output_ids for result in Engine(tiny, cache="none").generate(PROMPTS, GREEDY)]
    got = Engine(tiny, mine.parts, **settings).generate(PROMPTS, GREEDY)
    assert [result.output_ids for result in got] == want


def test_the_engine_really_reads_the_learners_keys(mine, tiny):
    """Change what the learner's cache returns, and the output must change."""
    engine = Engine(tiny, mine.parts)
    update = engine.cache.update
    engine.cache.update = lambda *args: [(K.flip(0), V) for K, V in update(*args)]
    assert engine.generate(PROMPTS[0], GREEDY).output_ids != Engine(tiny).generate(PROMPTS[0], GREEDY).output_ids


def test_each_request_has_a_cache_of_its_own_and_gives_it_back(mine, tiny):
    engine = Engine(tiny, mine.parts)
    assert isinstance(engine.cache, LearnerCache) and engine.cache.spec == "contiguous"
    slots = [opened(engine.cache, 4) for _ in range(3)]
    assert slots == [0, 1, 2]
    engine.cache.close(1)
    assert opened(engine.cache, 4) == 1
    for slot in range(3):
        engine.cache.close(slot)
    engine.generate(PROMPTS, GREEDY)
    assert engine.cache.slots == {}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_the_learners_memory_has_the_models_dtype_and_the_default_stays(mine, dtype):
    before = torch.get_default_dtype()
    engine = Engine(random_model(dtype=dtype), mine.parts)
    opened(engine.cache, 8)
    assert torch.get_default_dtype() == before
    ours = Engine(random_model(dtype=dtype)).generate(PROMPTS[0], GREEDY)
    assert engine.generate(PROMPTS[0], GREEDY).output_ids == ours.output_ids


def test_other_kinds_of_caches_stay_the_engines_own(mine, tiny):
    assert not isinstance(Engine(tiny, mine.parts, cache="none").cache, LearnerCache)


def test_a_cache_that_an_earlier_stage_put_there_is_kept_where_it_is_of_another_kind():
    class Other:
        kind = spec = "other"

    parts = STAGE.install(CPU, {"PreallocatedCache": object}, lambda exercise, function: function)
    other = Other()
    assert parts.cache(other) is other


def test_untouched_exercises_leave_the_cache_to_the_engine(tiny):
    mine = load_mine(ROOT / "exercises")
    assert cache_use(mine).owner == REFERENCE and cache_use(mine).reason == ""
    assert not isinstance(Engine(tiny, mine.parts).cache, LearnerCache)


def test_an_exception_in_the_learners_cache_names_it_and_its_line(tiny, tmp_path):
    line = "        start, stop = self.length[layer], self.length[layer] + k.shape[0]"
    mine = load_mine(changed(tmp_path, LAB, {line: line + "\n        assert self.k.shape[1] < 25, 'too large for me'"}))
    assert cache_use(mine).owner == YOURS
    with pytest.raises(StageFailed, match=r"your cache \(07\.PreallocatedCache\) raised AssertionError at line \d+ of"):
        Engine(tiny, mine.parts).generate(PROMPTS[0], GREEDY)


def test_a_cache_that_returns_too_few_tokens_is_named_before_attention_sees_it(tiny, tmp_path):
    line = "        return self.k[layer, :stop], self.v[layer, :stop]"
    short = "        if stop > 12:\n            stop -= 1\n" + line
    mine = load_mine(changed(tmp_path, LAB, {line: short}))
    assert cache_use(mine).owner == YOURS
    with pytest.raises(StageFailed, match=r"update returned \[12, 2, 10\].*want \[13, 2, 10\]"):
        Engine(tiny, mine.parts).generate(PROMPTS[0], GREEDY)
