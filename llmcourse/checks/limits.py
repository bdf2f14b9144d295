"""Stop a learner's code that runs too long, in whatever thread and on whatever system it runs."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
from contextlib import AbstractContextManager
from types import CodeType, FrameType

REPEAT_SECONDS = 0.05
POLL_SECONDS = 0.001
INSTRUCTIONS_TO_DELIVERY = 100
_MUST_FINISH = (__name__, "llmcourse.checks.forbid", "contextlib")  # what switches hooks and timers off again


class TimeLimit(BaseException):
    """Raised inside code that ran past its limit; a BaseException, so that `except Exception` does not catch it."""


def time_limit(seconds: float) -> AbstractContextManager[None]:
    """Raise TimeLimit in the body of a `with` after `seconds`, and again every 0.05 s while the body swallows it.

    On the main thread of a system with SIGALRM a timer interrupts even a sleep; elsewhere a second thread raises it at
    the next Python instruction. Only the former stops code that waits in one C call, and a loop whose bare `except:`
    catches everything.
    """
    on_main = threading.current_thread() is threading.main_thread()
    return _BySignal(seconds) if on_main and hasattr(signal, "setitimer") else _ByThread(seconds)


def _stands_on(frame: FrameType | None, code: CodeType) -> bool:
    """Whether `code` is being executed in this frame or in one that called it."""
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


class _BySignal(AbstractContextManager):
    """A timer whose handler raises; where the body swallows that, the next one follows it into its `except`."""

    def __init__(self, seconds: float):
        self.seconds, self.fired = seconds, False

    def __enter__(self) -> None:
        self.owner, self.trace_before = sys._getframe(1), sys.gettrace()
        self.before = signal.signal(signal.SIGALRM, self._stop)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, REPEAT_SECONDS)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if frame is None or frame.f_globals.get("__name__") in _MUST_FINISH:
            return  # it rings again soon
        if self.fired:
            self._follow(frame)
        self.fired = True
        raise TimeLimit

    def _follow(self, frame: FrameType | None) -> None:
        """Raise at the next line too: `while True` around `try … except:` catches whatever is raised inside the try."""

        def again(frame: FrameType, event: str, argument: object):
            if event == "line":
                raise TimeLimit
            return again if event == "exception" else None

        while frame is not None and frame is not self.owner:
            if not frame.f_globals.get("__name__", "").startswith(("llmcourse.", "contextlib")):
                frame.f_trace = again
            frame = frame.f_back
        sys.settrace(again)

    def __exit__(self, *error) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)
        if self.fired:
            sys.settrace(self.trace_before)
        del self.owner


class _ByThread(AbstractContextManager):
    """Uses only locks and lists, whose operations are one C call: the exception may arrive after any instruction."""

    def __init__(self, seconds: float):
        self.seconds = seconds

    def __enter__(self) -> None:
        self.thread, self.body = threading.get_ident(), sys._getframe(1).f_code
        self.over, self.watching = threading.Lock(), [True]
        self.over.acquire()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        wait = self.seconds
        while not self.over.acquire(timeout=wait):
            if not _stands_on(sys._current_frames().get(self.thread), self.body):
                break  # the body was left by another way, and its thread's number may be another's by now
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread), ctypes.py_object(TimeLimit))
            wait = REPEAT_SECONDS
        self.watching.clear()

    def __exit__(self, *error) -> None:
        """Wait for the watcher's end, and take what it may have raised meanwhile.

        An exception that was raised but not delivered must not be withdrawn: Python 3.11 then keeps looking for it, and
        hangs under a profile hook.
        """
        while True:
            try:
                if self.over.locked():
                    self.over.release()
                while self.watching:
                    time.sleep(POLL_SECONDS)
                for _ in range(INSTRUCTIONS_TO_DELIVERY):
                    pass
                return
            except TimeLimit:
                continue
