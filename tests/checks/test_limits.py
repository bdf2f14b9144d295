"""Time limits on the main thread (by signal) and elsewhere (by a second thread). Only what is raised is asserted."""

from __future__ import annotations

import signal
import sys
import threading

import pytest

from llmcourse.checks.limits import TimeLimit, time_limit


def spin():
    while True:
        pass


def in_thread(function) -> list:
    """What the function raised in a thread of its own, and whether code after it still ran undisturbed."""
    seen: list = []

    def run():
        try:
            with time_limit(0.1):
                function()
        except BaseException as error:
            seen.append(type(error))
        seen.append(sum(range(100_000)))

    worker = threading.Thread(target=run)
    worker.start()
    worker.join(30)
    return seen


def test_a_loop_on_the_main_thread_is_stopped():
    with pytest.raises(TimeLimit), time_limit(0.1):
        spin()


def test_a_loop_on_another_thread_is_stopped_and_nothing_later_is():
    assert in_thread(spin) == [TimeLimit, sum(range(100_000))]


def test_code_that_ends_in_time_is_left_alone_on_another_thread():
    assert in_thread(lambda: None) == [sum(range(100_000))]


def test_a_loop_that_swallows_the_first_interruption_gets_another():
    def swallow_once():
        try:
            spin()
        except BaseException:
            spin()

    with pytest.raises(TimeLimit), time_limit(0.1):
        swallow_once()


@pytest.mark.parametrize("swallow", [
    "while True:\n    try: len('a')\n    except: pass",
    "while True:\n    try:\n        while True: len('a')\n    except BaseException:\n        pass",
    "while True:\n    try:\n        while True: len('a')\n    except BaseException as e:\n        continue",
    "import time\nwhile True:\n    try: time.sleep(9)\n    except BaseException: pass",
])
def test_a_loop_that_swallows_everything_is_stopped(swallow):
    with pytest.raises(TimeLimit), time_limit(0.1):
        exec(swallow, {})
    assert sys.gettrace() is None


def test_the_signal_handler_of_before_is_back_afterwards():
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(5):
        assert signal.getsignal(signal.SIGALRM) is not before
    assert signal.getsignal(signal.SIGALRM) is before
