"""Stop a learner's code that runs too long, in whatever thread and on whatever system it runs."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

REPEAT_SECONDS = 0.05


class TimeLimit(BaseException):
    """Raised inside code that ran past its limit; a BaseException, so that `except Exception` does not catch it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimit in the body after `seconds`, and again every 0.05 s while the body swallows it.

    On the main thread of a system with SIGALRM a timer interrupts even a sleep; elsewhere a second thread raises it at
    the next Python instruction. Code that never comes back from one C call is stopped only by the former.
    """
    on_main = threading.current_thread() is threading.main_thread()
    limit = _by_signal if on_main and hasattr(signal, "setitimer") else _by_thread
    with limit(seconds):
        yield


@contextmanager
def _by_signal(seconds: float) -> Iterator[None]:
    def stop(number, frame):
        raise TimeLimit

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _by_thread(seconds: float) -> Iterator[None]:
    target = ctypes.c_ulong(threading.get_ident())
    raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
    over, lock = threading.Event(), threading.Lock()

    def watch():
        wait = seconds
        while not over.wait(wait):
            with lock:
                if not over.is_set():
                    raise_in_thread(target, ctypes.py_object(TimeLimit))
            wait = REPEAT_SECONDS

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        with lock:
            over.set()
            raise_in_thread(target, None)
