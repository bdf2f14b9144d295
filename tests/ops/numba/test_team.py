"""Threads side by side: what happens when one of them fails, when two callers come, and after a fork."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

pytest.importorskip("numba")

from llmcourse.ops.numba.jit import entry
from llmcourse.ops.numba.team import Team, barrier, share


@entry
def meet(seen, sync, rank, size):
    """Everybody writes, everybody meets, everybody reads what the neighbour wrote; a hundred times."""
    for i in range(100):
        seen[rank] = i
        barrier(sync, size)
        if seen[(rank + 1) % size] != i:
            seen[size + rank] += 1
        barrier(sync, size)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_nobody_passes_a_barrier_before_all_have_come(size):
    seen = np.zeros(2 * size, np.int64)
    Team(size).run(meet, seen)
    assert seen[:size].tolist() == [99] * size and not seen[size:].any()


def test_shares_are_whole_and_cover_everything():
    for n in (0, 1, 7, 64):
        for size in (1, 2, 5):
            parts = [share.py_func(n, rank, size) for rank in range(size)]
            assert [i for a, z in parts for i in range(a, z)] == list(range(n))


@pytest.mark.parametrize("failing", [0, 1])
def test_an_exception_on_one_thread_leaves_no_other_at_the_barrier_and_comes_out(failing):
    def kernel(seen, sync, rank, size):
        if rank == failing:
            raise ZeroDivisionError("planted")
        meet(seen, sync, rank, size)

    team, seen = Team(2), np.zeros(4, np.int64)
    with pytest.raises(ZeroDivisionError, match="planted"):
        team.run(kernel, seen)
    seen[:] = 0
    team.run(meet, seen)
    assert seen.tolist() == [99, 99, 0, 0]


def test_a_call_from_inside_a_call_is_refused():
    team = Team(2)

    def inner(sync, rank, size):
        if rank == 0:
            team.run(inner)

    with pytest.raises(RuntimeError, match="middle of a step"):
        team.run(inner)


def test_two_callers_take_turns():
    team, seen = Team(2), np.zeros(4, np.int64)
    callers = [threading.Thread(target=lambda: [team.run(meet, seen) for _ in range(5)]) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert not any(caller.is_alive() for caller in callers) and not seen[2:].any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_gets_threads_of_its_own():
    team, seen = Team(2), np.zeros(4, np.int64)
    team.run(meet, seen)
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(20)  # a child that waits for threads that do not exist is ended
        team.run(meet, seen)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
