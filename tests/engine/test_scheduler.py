"""The scheduler: decode first, prompts in pieces, first come first served."""

from __future__ import annotations

import pytest

from llmcourse import SamplingParams
from llmcourse.engine.request import Request
from llmcourse.engine.scheduler import Scheduler


def request(n_prompt, n_computed=0):
    made = Request(list(range(n_prompt)), SamplingParams(), 0, 0, 10, None, 0.0)
    made.n_computed = n_computed
    return made


def sizes(scheduler):
    return [(len(r.prompt_ids), n) for r, n in scheduler.schedule()]


def test_without_a_budget_everything_missing_is_computed_at_once():
    scheduler = Scheduler()
    for made in (request(9), request(4, 3), request(7, 2)):
        scheduler.add(made)
    assert sizes(scheduler) == [(4, 1), (9, 9), (7, 5)]


def test_decode_comes_first_and_prompts_share_the_rest_in_order():
    scheduler = Scheduler(max_step_tokens=8)
    for made in (request(20), request(5, 4), request(6, 5), request(30)):
        scheduler.add(made)
    assert sizes(scheduler) == [(5, 1), (6, 1), (20, 6)]


def test_at_most_max_requests_run_and_the_next_follows_when_one_leaves():
    scheduler = Scheduler(max_requests=2)
    made = [request(n) for n in (3, 4, 5)]
    for one in made:
        scheduler.add(one)
    assert sizes(scheduler) == [(3, 3), (4, 4)]
    scheduler.remove(made[0])
    assert sizes(scheduler) == [(4, 4), (5, 5)]
    assert scheduler.n_unfinished == 2


def test_a_waiting_request_can_be_removed_and_an_unknown_one_cannot():
    scheduler = Scheduler(max_requests=1)
    first, second = request(3), request(4)
    scheduler.add(first)
    scheduler.add(second)
    scheduler.schedule()
    scheduler.remove(second)
    assert scheduler.n_unfinished == 1
    with pytest.raises(ValueError):
        scheduler.remove(second)


@pytest.mark.parametrize("settings", [{"max_requests": 0}, {"max_step_tokens": 0}])
def test_a_bound_below_one_is_refused(settings):
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Scheduler(**settings)
