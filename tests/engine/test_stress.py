"""Random walks through the engine: whatever comes, leaves or fails, everybody gets the ids that they would have had alone.

Requests arrive at any time, with beginnings that others share, into pools that are too small for all of them; some are
cancelled, some steps fail. Tiny random model, float64. Oracle: the whole text through the reference again for every token.
Hypothesis prints the walk that breaks it, and how to repeat it.
"""

from __future__ import annotations

from functools import lru_cache

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from llmcourse import Engine, SamplingParams
from tests.engine.test_lattice import slow_greedy
from tests.random_model import random_model

MODEL = random_model()
BEGINNINGS = [[], [(7 * i * i + 3) % 97 for i in range(32)], [(5 * i * i + 11) % 97 for i in range(19)]]
LONGEST = 8


@lru_cache(maxsize=None)
def alone(prompt: tuple[int, ...]) -> list[int]:
    """The first ids that follow a prompt, computed without an engine."""
    return slow_greedy(MODEL, list(prompt), n_new=LONGEST)


class Broken(Exception):
    """A step that was made to fail."""


class Walk(RuleBasedStateMachine):
    """One engine, and all that can happen to it."""

    cache, budget, max_requests = "paged:6", 7, 64

    def __init__(self):
        super().__init__()
        self.engine = Engine(MODEL, cache=self.cache, max_step_tokens=self.budget, max_requests=self.max_requests)
        self.compute, self.fails = self.engine.runner.compute, False
        self.engine.runner.compute = self.computed
        self.live, self.n_idle = [], 0

    def computed(self, batch):
        logits = self.compute(batch)  # what it writes is there when it fails
        if self.fails:
            self.fails = False
            raise Broken
        return logits

    @rule(beginning=st.sampled_from(range(3)), rest=st.lists(st.integers(0, 3), min_size=1, max_size=4),
          n_new=st.integers(1, LONGEST))  # fmt: skip
    def arrives(self, beginning, rest, n_new):
        prompt = BEGINNINGS[beginning] + rest
        self.live.append(self.engine.add(prompt, SamplingParams(max_tokens=n_new, temperature=0)))

    @rule(n=st.integers(1, 5))
    def steps(self, n):
        for _ in range(n):
            self.step()

    @precondition(lambda self: self.live)
    @rule()
    def a_step_fails(self):
        self.fails = True
        with pytest.raises(Broken):
            for _ in range(3 * len(self.live) + 3):
                self.step()
            assert not any(request.finish_reason is None for request in self.live), "nothing ran"
            raise Broken
        self.fails = False

    @precondition(lambda self: self.live)
    @rule(which=st.integers(0, 99))
    def leaves(self, which):
        self.engine.cancel(self.live[which % len(self.live)])

    def step(self):
        before = sum(request.n_output for request in self.live)
        self.engine.step()
        self.live = [request for request in self.live if not self.ended(request)]
        moved = sum(request.n_output for request in self.live) != before or not self.live
        self.n_idle = 0 if moved else self.n_idle + 1
        assert self.n_idle < 40, "steps without a token: nobody gets on"

    def ended(self, request):
        assert request.error is None
        if request.finish_reason == "length":
            assert request.output_ids == alone(tuple(request.prompt_ids))[: request.max_output]
        return request.finish_reason is not None

    @invariant()
    def who_is_under_way_has_the_right_ids_so_far_and_no_memory_is_lost(self):
        for request in self.live:
            assert request.output_ids == alone(tuple(request.prompt_ids))[: request.n_output]
        if hasattr(self.engine.cache, "pool"):
            self.engine.cache.pool.check()
            held = {block for table in self.engine.cache.slots.values() for block in table.blocks}
            assert self.engine.cache.pool.n_held == len(held)

    def teardown(self):
        while self.engine.scheduler.n_unfinished:
            self.step()
        assert not self.engine.cache.slots
        assert self.engine.cache.nbytes == 0


def walks(cache: str, budget: int | None, max_requests: int, examples: int) -> type:
    """The walk through an engine of this kind."""
    kind = type("Walk", (Walk,), {"cache": cache, "budget": budget, "max_requests": max_requests})
    kind.TestCase.settings = settings(max_examples=examples, stateful_step_count=25, deadline=None)
    return kind.TestCase


test_a_tiny_pool_and_a_small_budget = walks("paged:4", 7, 64, 12)
test_a_small_pool_without_a_budget = walks("paged:6", None, 3, 12)
test_a_contiguous_cache = walks("contiguous", 5, 2, 8)
