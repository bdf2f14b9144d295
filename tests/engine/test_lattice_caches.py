"""The equivalence lattice over the caches that forget or round: their answer, too, must not depend on the arrangement.

Tiny random model, float64. Oracle of each cache: the same cache, one request alone, one token a step, reference table. That
this is the right answer is shown in tests/cache: a window by masked full attention, quantized ones by bounds of the error.
"""

from __future__ import annotations

import pytest

from llmcourse import Engine, SamplingParams
from llmcourse.ops import CPU, REFERENCE
from tests.engine.test_lattice import PROMPTS
from tests.random_model import random_model

N_NEW = 50
GREEDY = SamplingParams(max_tokens=N_NEW, temperature=0)
SPECS = ["int8", "int4", "int4:channel/8", "int4:token/5", "window:9+2", "window:4+1", "window:30+4"]


@pytest.fixture(scope="module")
def tiny():
    return random_model()


@pytest.fixture(scope="module")
def expected(tiny):
    def slowly(spec):
        engine = Engine(tiny, REFERENCE, cache=spec, max_step_tokens=1, max_requests=1)
        return [engine.generate(prompt, GREEDY).output_ids for prompt in PROMPTS]

    return {spec: slowly(spec) for spec in SPECS}


@pytest.mark.parametrize("parts", [REFERENCE, CPU], ids=["reference", "cpu"])
@pytest.mark.parametrize("budget", [2, 3, 7, 13, None])
@pytest.mark.parametrize("spec", SPECS)
def test_any_budget_and_any_neighbours_give_the_same_ids(tiny, expected, spec, budget, parts):
    engine = Engine(tiny, parts, cache=spec, max_step_tokens=budget)
    order = (3, 0, 0, 2, 1)
    assert [result.output_ids for result in engine.generate([PROMPTS[i] for i in order], GREEDY)] == [
        expected[spec][i] for i in order
    ]
    assert not engine.cache.slots


def test_outputs_are_not_degenerate_and_small_caches_change_them(expected):
    assert all(len({token for output in outputs for token in output}) >= 20 for outputs in expected.values())
    assert len({str(outputs) for outputs in expected.values()}) >= 5


def test_a_cache_that_pays_for_long_steps_gets_short_ones(tiny):
    assert Engine(tiny, cache="window:9+2").scheduler.max_step_tokens == 512
    assert Engine(tiny, cache="window:9+2", max_step_tokens=700).scheduler.max_step_tokens == 700
    assert Engine(tiny).scheduler.max_step_tokens is None
