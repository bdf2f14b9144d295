"""The equivalence lattice: greedy output must not depend on how the work was arranged.

On a tiny random model in float64 the ids are identical. Oracle: the whole text through the model again for every token,
by the reference table, without a cache.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse import Engine, SamplingParams
from llmcourse.batch import Batch, Chunk
from llmcourse.cache import ContiguousCache
from llmcourse.ops import CPU, REFERENCE
from tests.caches import opened
from tests.random_model import TINY, random_model

N_NEW = 40
PROMPTS = [[5, 9, 2, 77, 31, 8, 8, 60], [1], [96, 3, 50, 12, 41], [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]]
GREEDY = SamplingParams(max_tokens=N_NEW, temperature=0)


@pytest.fixture(scope="module")
def tiny():
    return random_model()


@pytest.fixture(scope="module")
def expected(tiny):
    return [slow_greedy(tiny, prompt) for prompt in PROMPTS]


def slow_greedy(model, prompt, parts=REFERENCE, n_new=N_NEW):
    ids = list(prompt)
    for _ in range(n_new):
        ids.append(int(model(ids, parts)[-1].argmax()))
    return ids[len(prompt) :]


def test_the_tiny_model_is_not_degenerate(expected):
    assert len({token for output in expected for token in output}) >= 20
    assert len({tuple(output) for output in expected}) == len(PROMPTS)


@pytest.mark.parametrize("parts", [REFERENCE, CPU], ids=["reference", "cpu"])
@pytest.mark.parametrize("cache", ["none", "contiguous"])
def test_every_prompt_alone_gives_the_same_ids(tiny, expected, parts, cache):
    engine = Engine(tiny, parts, cache=cache)
    assert [engine.generate(prompt, GREEDY).output_ids for prompt in PROMPTS] == expected


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 7, 11, 13, None])
def test_any_budget_per_step_gives_the_same_ids(tiny, expected, budget):
    engine = Engine(tiny, max_step_tokens=budget)
    assert [result.output_ids for result in engine.generate(PROMPTS, GREEDY)] == expected


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2), (2, 0), (1, 1, 1, 3, 0)])
@pytest.mark.parametrize("max_requests", [1, 2, 64])
def test_any_neighbours_give_the_same_ids(tiny, expected, order, max_requests):
    engine = Engine(tiny, max_requests=max_requests)
    results = engine.generate([PROMPTS[i] for i in order], GREEDY)
    assert [result.output_ids for result in results] == [expected[i] for i in order]


def test_requests_that_join_and_leave_midway_give_the_same_ids(tiny, expected):
    engine = Engine(tiny, max_step_tokens=4)
    requests = []
    for prompt in PROMPTS:
        requests.append(engine.add(prompt, GREEDY))
        for _ in range(3):
            engine.step()
    while engine.scheduler.n_unfinished:
        engine.step()
    assert [request.output_ids for request in requests] == expected


def test_a_second_round_on_a_used_engine_gives_the_same_ids(tiny, expected):
    engine = Engine(tiny)
    engine.generate(PROMPTS[3], GREEDY)
    assert engine.generate(PROMPTS[0], GREEDY).output_ids == expected[0]


@pytest.mark.parametrize("parts", [REFERENCE, CPU], ids=["reference", "cpu"])
def test_a_text_split_at_every_position_gives_the_same_logits(tiny, parts):
    """Float64, bound 1e-12: sums of a few hundred terms of size one, taken in another order."""
    ids = PROMPTS[0] + PROMPTS[2]
    whole = tiny(ids, REFERENCE)
    for split in range(1, len(ids)):
        cache = ContiguousCache(TINY, torch.float64, "cpu")
        slot = opened(cache, len(ids))
        first = tiny.forward(Batch.of([Chunk(ids[:split], 0, slot, n_sample=split)]), cache, parts)
        rest = tiny.forward(Batch.of([Chunk(ids[split:], split, slot, n_sample=len(ids) - split)]), cache, parts)
        torch.testing.assert_close(torch.cat([first, rest]), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("first_tokens", [1, 2, 3, 5, 8, 13, 63])
@pytest.mark.parametrize("budget", [1, 3, None])
def test_a_cache_that_moves_while_it_grows_gives_the_same_ids(tiny, expected, first_tokens, budget):
    engine = Engine(tiny, max_step_tokens=budget)
    engine.cache.first_tokens = first_tokens
    assert [result.output_ids for result in engine.generate(PROMPTS, GREEDY)] == expected


@pytest.mark.parametrize("first_tokens", [1, 2, 4, 7])
def test_a_text_split_at_every_position_gives_the_same_logits_in_a_growing_cache(tiny, first_tokens):
    ids = PROMPTS[0] + PROMPTS[2]
    whole = tiny(ids, REFERENCE)
    for split in range(1, len(ids)):
        cache = ContiguousCache(TINY, torch.float64, "cpu", first_tokens)
        slot = opened(cache, len(ids))
        tiny.forward(Batch.of([Chunk(ids[:split], 0, slot)]), cache, CPU)
        rest = tiny.forward(Batch.of([Chunk(ids[split:], split, slot, n_sample=len(ids) - split)]), cache, CPU)
        torch.testing.assert_close(rest, whole[split:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("forgotten", ["the last token", "the last layer"])
def test_a_move_that_forgets_something_turns_the_lattice_red(tiny, expected, forgotten):
    """The negative control of growth."""
    engine = Engine(tiny)
    grow = engine.cache._grow

    def careless(slot, needed):
        used, moves = slot.reserved, 0 < slot.reserved < needed
        grow(slot, needed)
        if not moves:
            return
        lost = (slice(None), slice(None), used - 1) if forgotten == "the last token" else (-1, slice(None), slice(used))
        slot.keys[lost] = 0

    engine.cache.first_tokens, engine.cache._grow = 3, careless
    assert engine.generate(PROMPTS[0], GREEDY).output_ids != expected[0]


def test_a_position_off_by_one_turns_the_lattice_red(tiny, expected):
    """The negative control: the same comparison must notice a planted error in decode only."""

    def late_angles(positions, head_dim, theta, scaling=None):
        shift = 1 if len(positions) == 1 else 0
        return REFERENCE.rope_angles(positions + shift, head_dim, theta, scaling)

    engine = Engine(tiny, replace(CPU, rope_angles=late_angles))
    assert engine.generate(PROMPTS[0], GREEDY).output_ids != expected[0]


@pytest.mark.parametrize("temperature", [0.7, 1.5])
def test_seeded_draws_do_not_depend_on_neighbours_or_budget(tiny, temperature):
    params = [SamplingParams(max_tokens=N_NEW, temperature=temperature, seed=seed) for seed in range(len(PROMPTS))]
    alone = [Engine(tiny).generate(prompt, own).output_ids for prompt, own in zip(PROMPTS, params)]
    together = Engine(tiny, max_step_tokens=3).generate(PROMPTS, params)
    assert [result.output_ids for result in together] == alone
    assert len({tuple(ids) for ids in alone}) == len(PROMPTS)
