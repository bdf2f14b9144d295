"""Threads that go through one compiled function side by side, as the programs of a GPU grid do, and meet at barriers.

A decode step of 30 layers meets some 240 times, and to wake a sleeping thread takes 20 to 50 microseconds. So threads wait
for each other by looking at a counter again and again, and offer their core to others after a while.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from contextlib import contextmanager
from queue import SimpleQueue

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from llmcourse.ops.numba.jit import kernel

_YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
if sys.platform == "win32":
    llvm.add_symbol(_YIELD, ctypes.cast(ctypes.windll.kernel32.SwitchToThread, ctypes.c_void_p).value)

ARRIVED, STOPPED = 0, 8  # places in `sync`, on cache lines of their own
_LOOKS = 2000  # before a waiting thread offers its core


@intrinsic
def _arrive(typingctx, sync):
    """Add 1 to sync[ARRIVED] for all threads to see; return the sum."""

    def build(context, builder, sig, args):
        pointer = context.make_array(sig.args[0])(context, builder, args[0]).data
        one = ir.Constant(ir.IntType(64), 1)
        return builder.add(builder.atomic_rmw("add", pointer, one, "seq_cst"), one)

    return types.int64(sync), build


@intrinsic
def _look(typingctx, sync, place):
    """sync[place], read from memory every time."""

    def build(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "acquire", 8)

    return types.int64(sync, types.int64), build


@intrinsic
def _give_way(typingctx):
    """Let another thread have this core."""

    def build(context, builder, sig, args):
        kind = ir.FunctionType(ir.IntType(32), [])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, _YIELD), [])

    return types.int32(), build


@kernel
def barrier(sync, size):
    """Wait until all `size` threads have come here. The counter only grows: each barrier is `size` further than the last.

    Where the team was stopped nobody waits any more: the threads run to the end of the kernel, whose results are not used.
    """
    if size == 1:
        return
    goal = (_arrive(sync) - 1) // size * size + size
    looks = 0
    while _look(sync, ARRIVED) < goal:
        looks += 1
        if looks > _LOOKS:
            if _look(sync, STOPPED) != 0:
                return
            _give_way()


@kernel
def share(n, rank, size):
    """This thread's part of n pieces: start, stop."""
    return n * rank // size, n * (rank + 1) // size


class Team:
    """`size` threads, of which the caller is one. `run` calls a kernel once on each of them.

    One kernel at a time: a second caller waits, and a call from inside a call is refused. The threads are started when they
    are first needed, and again in a process that was forked, where they no longer exist.
    """

    def __init__(self, size: int):
        self.size, self.sync = size, np.zeros(16, np.int64)
        self._process = self._caller = None
        self._lock = threading.Lock()

    def run(self, kernel, *arguments) -> None:
        """kernel(*arguments, sync, rank, size) on every thread, rank 0 on this one.

        Whatever is raised on any thread is raised here, after all of them have ended. Raises RuntimeError from inside a run.
        """
        with self._alone():
            for inbox in self._inboxes:
                inbox.put((kernel, arguments))
            try:
                kernel(*arguments, self.sync, 0, self.size)
            except BaseException:
                self.sync[STOPPED] = 1
                raise
            finally:
                self._gather()

    @contextmanager
    def _alone(self):
        if self._process != os.getpid():
            self._start()
        if self._caller == threading.get_ident():
            raise RuntimeError("this team is in the middle of a step: a kernel cannot start another on the same team")
        with self._lock:
            self._caller = threading.get_ident()
            try:
                yield
            finally:
                self._caller = None

    def _start(self) -> None:
        self._process, self._caller, self._lock = os.getpid(), None, threading.Lock()
        self.sync[:] = 0
        self._inboxes = [SimpleQueue() for _ in range(self.size - 1)]
        self._done: SimpleQueue = SimpleQueue()
        for i, inbox in enumerate(self._inboxes):
            work = threading.Thread(target=_work, args=(self, inbox, i + 1, self._done), daemon=True, name="llmcourse-team")
            work.start()

    def _gather(self) -> None:
        """Wait for the others, also while a Ctrl-C comes; then raise what came first."""
        errors, interrupted = [], None
        for _ in self._inboxes:
            while True:
                try:
                    errors.append(self._done.get())
                    break
                except KeyboardInterrupt as error:
                    self.sync[STOPPED], interrupted = 1, error
        self.sync[:] = 0
        for error in [interrupted, *errors]:
            if error is not None:
                raise error


def _work(team: Team, inbox: SimpleQueue, rank: int, done: SimpleQueue) -> None:
    while True:
        kernel, arguments = inbox.get()
        try:
            kernel(*arguments, team.sync, rank, team.size)
            done.put(None)
        except BaseException as error:
            team.sync[STOPPED] = 1
            done.put(error)
        del kernel, arguments  # hold no model while waiting


_teams: dict[int, Team] = {}


def team_of(size: int) -> Team:
    """The process's team of this size: engines share one, since one step at a time is all that the cores can do."""
    return _teams.setdefault(size, Team(size))
