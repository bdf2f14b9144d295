"""The equivalence lattice over the paged cache: whole, shared, preempted, in any company, the ids are those without a cache.

Tiny random model, float64, identical ids. Oracle: the whole text through the reference again for every token.
"""

from __future__ import annotations

import pytest
import torch

from llmcourse import Engine, SamplingParams
from llmcourse.errors import OutOfMemory
from llmcourse.ops import CPU, REFERENCE, paged
from llmcourse.ops.fused import FUSED
from tests.engine.test_lattice import GREEDY, PROMPTS, slow_greedy
from tests.random_model import random_model

BEGINNING = [(7 * i * i + 3) % 97 for i in range(35)]  # two whole blocks and a part
ALIKE = [BEGINNING[:n] + [50 + n, 3] for n in (16, 31, 32, 33, 35)]
SHORT = SamplingParams(max_tokens=12, temperature=0)


@pytest.fixture(scope="module")
def tiny():
    return random_model()


@pytest.fixture(scope="module")
def expected(tiny):
    return {tuple(prompt): slow_greedy(tiny, prompt) for prompt in PROMPTS}


@pytest.fixture(scope="module")
def expected_alike(tiny):
    return [slow_greedy(tiny, prompt, n_new=SHORT.max_tokens) for prompt in ALIKE]


def check(engine):
    """Nothing is held when nothing runs, and the pool fits together."""
    engine.cache.pool.check()
    assert engine.cache.pool.n_held == 0 and engine.cache.nbytes == 0 and not engine.cache.slots


@pytest.mark.parametrize("parts", [REFERENCE, CPU, FUSED], ids=["reference", "cpu", "fused"])
@pytest.mark.parametrize("budget", [1, 3, 7, 13, None])
def test_any_budget_and_any_neighbours_give_the_same_ids(tiny, expected, budget, parts):
    engine = Engine(tiny, parts, cache="paged:40", max_step_tokens=budget)
    prompts = [PROMPTS[i] for i in (3, 0, 0, 2, 1)]
    got = [result.output_ids for result in engine.generate(prompts, GREEDY)]
    assert got == [expected[tuple(prompt)] for prompt in prompts]
    check(engine)


@pytest.mark.parametrize("blocks", [4, 5, 7, 9])
def test_a_pool_too_small_for_all_preempts_and_gives_the_same_ids(tiny, expected, blocks):
    engine = Engine(tiny, cache=f"paged:{blocks}", max_step_tokens=9)
    got = [result.output_ids for result in engine.generate(PROMPTS, GREEDY)]
    assert got == [expected[tuple(prompt)] for prompt in PROMPTS]
    check(engine)


@pytest.mark.parametrize("together", [True, False], ids=["together", "one after the other"])
@pytest.mark.parametrize("budget", [5, None])
def test_texts_that_begin_alike_give_the_ids_that_each_has_alone(tiny, expected_alike, together, budget):
    engine = Engine(tiny, cache="paged:30", max_step_tokens=budget)
    if together:
        got = [result.output_ids for result in engine.generate(ALIKE, SHORT)]
    else:
        got = [engine.generate(prompt, SHORT).output_ids for prompt in ALIKE]
    assert got == expected_alike
    check(engine)


def test_a_beginning_that_was_computed_once_is_not_computed_again(tiny, expected_alike):
    engine = Engine(tiny, cache="paged:30")
    seen = []
    for prompt, ids in zip(ALIKE, expected_alike):
        request = engine.add(prompt, SHORT)
        (scheduled, n), = engine.scheduler.schedule(engine.cache)
        seen.append(n)
        while request.finish_reason is None:
            engine.step()
        assert request.output_ids == ids
    assert seen == [len(prompt) - found for prompt, found in zip(ALIKE, (0, 16, 16, 32, 32))]


def test_a_prompt_of_whole_blocks_sent_twice_still_has_a_token_to_compute(tiny):
    engine, prompt = Engine(tiny, cache="paged:30"), BEGINNING[:32]
    first = engine.generate(prompt, SHORT).output_ids
    assert engine.generate(prompt, SHORT).output_ids == first == slow_greedy(tiny, prompt, n_new=12)
    check(engine)


def test_old_and_unwritten_memory_reaches_nobody(tiny, expected):
    engine = Engine(tiny, cache="paged:40", max_step_tokens=5)
    engine.cache.keys.fill_(torch.nan), engine.cache.values.fill_(torch.nan)
    got = [result.output_ids for result in engine.generate(PROMPTS, GREEDY)]
    assert got == [expected[tuple(prompt)] for prompt in PROMPTS]


def test_a_length_one_short_turns_this_red(tiny, expected, monkeypatch):
    right = paged.decode_paged
    monkeypatch.setattr(paged, "decode_paged", lambda q, keys, values, tables, lengths, *rest: right(
        q, keys, values, tables, [max(1, length - 1) for length in lengths], *rest))
    got = [result.output_ids for result in Engine(tiny, cache="paged:40").generate(PROMPTS, GREEDY)]
    assert got != [expected[tuple(prompt)] for prompt in PROMPTS]


def test_a_request_that_could_outgrow_the_pool_is_refused_at_once_and_the_others_go_on(tiny, expected):
    engine = Engine(tiny, cache="paged:4")
    running = engine.add(PROMPTS[0], GREEDY)
    engine.step()
    with pytest.raises(OutOfMemory, match="65 tokens need 5 blocks of 16, and the pool has 4"):
        engine.cache.check_capacity(65)
    with pytest.raises(OutOfMemory, match="63 tokens need 4 blocks of 16, and the pool has 3"):
        Engine(tiny, cache="paged:3").generate([1, 2, 3], max_tokens=60)
    while running.finish_reason is None:
        engine.step()
    assert running.output_ids == expected[tuple(PROMPTS[0])]
