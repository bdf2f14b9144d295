"""The scheduler: one missing token first, prompts in pieces, first come first served, nobody waits for ever, preemption."""

from __future__ import annotations

import pytest

from llmcourse import SamplingParams
from llmcourse.cache import KVCache
from llmcourse.engine.prompts import IdsOnly
from llmcourse.engine.request import Request
from llmcourse.engine.scheduler import Scheduler
from llmcourse.errors import OutOfMemory


class Room(KVCache):
    """A cache that only counts tokens: those of all requests together are at most `n`."""

    def __init__(self, n=10**9):
        self.n, self.held, self.closed = n, {}, []

    def open(self, ids, capacity):
        slot = next(number for number in range(len(self.held) + 1) if number not in self.held)
        self.held[slot] = 0
        if not self.reserve(slot, len(ids)):
            del self.held[slot]
            raise OutOfMemory("no room to begin")
        return slot, 0

    def reserve(self, slot, length):
        more = max(0, length - self.held[slot])
        if sum(self.held.values()) + more > self.n:
            return False
        self.held[slot] += more
        return True

    def close(self, slot):
        self.closed.append(self.held.pop(slot))

    def bytes_for(self, n_tokens):
        return 100 * n_tokens


def request(n_prompt, max_output=10):
    return Request(list(range(n_prompt)), SamplingParams(), 0, 0, max_output, IdsOnly(()).stream, 0.0)


def added(scheduler, *requests):
    for one in requests:
        scheduler.add(one)
    return requests


def running(scheduler, cache, n_prompt, n_computed=0):
    """A request that has computed some of its tokens already."""
    made = request(n_prompt)
    made.slot, made.n_computed = cache.open(made.ids, made.capacity)[0], n_computed
    scheduler.running.append(made)
    return made


def sizes(scheduler, cache):
    return [(len(r.prompt_ids), n) for r, n in scheduler.schedule(cache)]


def computed(scheduler, cache):
    """One step in which everything goes well: each request that is complete gets a token, and ends after its last."""
    step = scheduler.schedule(cache)
    for one, n in step:
        one.n_computed += n
        if one.n_missing == 0:
            one.append(1, False, 0.0, None)
        if one.finish_reason is not None:
            scheduler.remove(one, cache)
    return [one for one, _ in step]


def test_without_a_budget_everything_missing_is_computed_at_once():
    scheduler, cache = Scheduler(), Room()
    for sizes_of in ((9, 0), (4, 3), (7, 2)):
        running(scheduler, cache, *sizes_of)
    assert sizes(scheduler, cache) == [(4, 1), (9, 9), (7, 5)]


def test_decode_comes_first_and_prompts_share_the_rest_in_order():
    scheduler, cache = Scheduler(max_step_tokens=8), Room()
    for sizes_of in ((20, 0), (5, 4), (6, 5), (30, 0)):
        running(scheduler, cache, *sizes_of)
    assert sizes(scheduler, cache) == [(5, 1), (6, 1), (20, 6)]


def test_at_most_max_requests_run_and_the_next_follows_when_one_leaves():
    scheduler, cache = Scheduler(max_requests=2), Room()
    made = added(scheduler, request(3), request(4), request(5))
    assert sizes(scheduler, cache) == [(3, 3), (4, 4)]
    scheduler.remove(made[0], cache)
    assert sizes(scheduler, cache) == [(4, 4), (5, 5)]
    assert scheduler.n_unfinished == 2 and cache.closed == [3]


def test_a_request_can_be_removed_wherever_it_stands_and_more_than_once():
    scheduler, cache = Scheduler(max_requests=1), Room()
    first, second = added(scheduler, request(3), request(4))
    scheduler.schedule(cache)
    for one in (second, first, first):
        scheduler.remove(one, cache)
    assert scheduler.n_unfinished == 0 and not cache.held


@pytest.mark.parametrize("settings", [{"max_requests": 0}, {"max_step_tokens": 0}])
def test_a_bound_below_one_is_refused(settings):
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Scheduler(**settings)


@pytest.mark.parametrize("budget", [1, 2, 3, 7])
@pytest.mark.parametrize("prompts", [[3] * 6, [1] * 6, [40, 1, 1, 40, 9, 2], [100, 100, 100]], ids=str)
def test_nobody_waits_longer_than_twice_the_requests_that_run(budget, prompts):
    """The bound of the scheduler's docstring: R requests, and each is in one of any 2R consecutive steps."""
    scheduler, cache = Scheduler(max_step_tokens=budget), Room()
    added(scheduler, *[request(n, max_output=10**6) for n in prompts])
    steps = [computed(scheduler, cache) for _ in range(12 * len(prompts))]
    everyone, within = set(scheduler.running), 2 * len(prompts)
    assert len(everyone) == len(prompts)
    for start in range(len(steps) - within):
        assert {one for step in steps[start : start + within] for one in step} == everyone


def test_a_small_budget_is_shared_evenly_among_those_that_stream():
    scheduler, cache = Scheduler(max_step_tokens=2), Room()
    made = added(scheduler, *[request(1, max_output=10**6) for _ in range(6)])
    for _ in range(30):
        computed(scheduler, cache)
    assert {one.n_output for one in made} == {10}


def test_when_room_runs_out_the_last_to_come_is_preempted_and_all_come_to_their_end():
    scheduler, cache = Scheduler(), Room(20)
    made = added(scheduler, *[request(4, max_output=9) for _ in range(3)])
    together = [len(computed(scheduler, cache)) for _ in range(30)]
    assert together[0] == 3 and [one.n_output for one in made] == [9, 9, 9]
    assert made[0].token_times and all(one.error is None for one in made)
    assert not cache.held and scheduler.n_unfinished == 0


def test_a_preempted_request_is_the_next_to_run():
    scheduler, cache = Scheduler(max_requests=1), Room()
    first, second = added(scheduler, request(3), request(4))
    scheduler.schedule(cache)
    scheduler.preempt(first, cache)
    assert first.n_computed == 0 and first.slot is None
    assert sizes(scheduler, cache) == [(3, 3)] and list(scheduler.waiting) == [second]


@pytest.mark.parametrize("n_prompt, message", [(30, "no room to begin"), (18, "2,100 bytes")])
def test_a_request_that_has_all_the_room_and_does_not_fit_ends_alone(n_prompt, message):
    scheduler, cache = Scheduler(max_requests=1), Room(20)
    large, small = added(scheduler, request(n_prompt), request(4, max_output=2))
    for _ in range(8):
        computed(scheduler, cache)
    assert large.finish_reason == "error" and message in str(large.error)
    assert small.n_output == 2 and not cache.held


def test_a_pausing_request_takes_no_turn_and_no_place_and_gives_its_memory_first():
    scheduler, cache = Scheduler(max_requests=1), Room(40)
    pausing, busy = added(scheduler, request(3, max_output=30), request(4, max_output=30))
    pausing.n_read = 0
    order = [computed(scheduler, cache) for _ in range(50)]
    assert pausing.n_output == 16 and busy.n_output == 30
    assert order[15:17] == [[pausing], [busy]]
    assert pausing.slot is None  # 19 and 34 tokens do not fit into 40
    pausing.n_read = 16
    for _ in range(14):
        computed(scheduler, cache)
    assert pausing.n_output == 30 and not cache.held


@pytest.mark.parametrize("pausing, gone", [(1, 1), (None, 2)], ids=["one pauses", "nobody pauses"])
def test_who_gives_way_is_one_that_pauses_or_else_the_last_to_come(pausing, gone):
    scheduler, cache = Scheduler(), Room(15)
    made = [running(scheduler, cache, 5, 5) for _ in range(3)]
    for one in made:
        one.ids += [1] * 16
    if pausing is not None:
        made[pausing].n_read = 0
    cache.n = 42
    assert [one for one, _ in scheduler.schedule(cache)] == [one for i, one in enumerate(made) if i != gone]
    assert made[gone].slot is None


def test_a_request_that_gives_way_after_it_was_chosen_is_not_in_the_step():
    scheduler, cache = Scheduler(), Room(10)
    first, last = (running(scheduler, cache, 5, 5) for _ in range(2))
    first.ids += [1] * 3
    last.ids += [1]  # it misses one token, so it is chosen before the first, which then needs its room
    cache.n = 12
    assert scheduler.schedule(cache) == [(first, 3)]
    assert last.slot is None and list(scheduler.waiting) == [last]


def test_a_newcomer_without_room_gets_that_of_one_that_pauses():
    scheduler, cache = Scheduler(), Room(8)
    pausing = running(scheduler, cache, 5, 5)
    pausing.ids += [1] * 16
    pausing.n_read = 0
    (new,) = added(scheduler, request(4))
    assert scheduler.schedule(cache) == [(new, 4)]
    assert pausing.slot is None and list(scheduler.waiting) == [pausing]
