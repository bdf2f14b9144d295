"""Fork a worker into its tier: `start(...)`, `SandboxedWorker.kill()`, `SandboxedWorker.ended()`. The caller has one thread only.

namespace: a keeper (unshares) ─ the first process of a new PID namespace (builds the root) ─ the worker. When the
    worker ends, or the first process is killed, the kernel kills every process that the worker left behind.
process: the worker alone; what it leaves behind is searched for and killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from . import filesystem
from .limits import Limits, become, die_first, set_limits
from .processes import children, descendants, memory_of
from .syscalls import PR_SET_PDEATHSIG, prctl

NAMESPACE, PROCESS = "namespace", "process"
SWEEP_SECONDS = 5.0
_BY_SIGNAL = 128


@dataclass(frozen=True)
class Sandbox:
    """Where workers run. tier: NAMESPACE or PROCESS; visible: of the former.

    scratch: the latter's folder, emptied after each worker; reads_all: see limits.become (process tier only).
    """

    tier: str
    limits: Limits
    uid: int
    visible: filesystem.VisibleFiles | None = None
    scratch: str = ""
    reads_all: bool = False


@dataclass
class SandboxedWorker:
    """A started worker. child: this process's own child; first: whom to kill; error: why it could not start."""

    sandbox: Sandbox
    child: int
    first: int
    error: str = ""

    def kill(self) -> None:
        """Kill the worker; `ended` is still to be called."""
        try:
            os.kill(self.first, signal.SIGKILL)
        except ProcessLookupError:
            return  # it ended by itself meanwhile

    def processes(self) -> list[int]:
        """The worker, and what it left to the first process of its namespace."""
        return children(self.first) if self.sandbox.tier == NAMESPACE else [self.child]

    def memory(self) -> int:
        """Bytes of memory that its processes fill, those that they share and those of its own file system among them."""
        in_files = filesystem.scratch_used(self.first) if self.sandbox.tier == NAMESPACE else 0
        return memory_of(descendants(self.processes())) + in_files

    def ended(self, *, wait: bool) -> str | None:
        """How it ended, once it has and nothing of it is left: "signal 9", "exit status 0"; None while it runs."""
        pid, status = os.waitpid(self.child, 0 if wait else os.WNOHANG)
        if not pid:
            return None
        if self.sandbox.tier == PROCESS:
            _sweep(self.sandbox.uid)
            _empty(self.sandbox.scratch)
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            return f"signal {-code}"
        return (
            f"signal {code - _BY_SIGNAL}"
            if code > _BY_SIGNAL and self.sandbox.tier == NAMESPACE
            else f"exit status {code}"
        )


def start(sandbox: Sandbox, keep: list[int], cpu_seconds: float, work: Callable[[], None]) -> SandboxedWorker:
    """Run `work` in a new process of this sandbox, with none of this process's open files but `keep`."""
    report, said = os.pipe()
    enter = _enter_namespace if sandbox.tier == NAMESPACE else _enter_process
    child = os.fork()
    if not child:
        os.close(report)
        die_first()
        _never_returns(lambda: enter(sandbox, keep, cpu_seconds, work, said), said)
    os.close(said)
    with os.fdopen(report, "r") as lines:
        told = dict(line.rstrip("\n").split(" ", 1) for line in lines)
    return SandboxedWorker(sandbox, child, int(told.get("first", child)), told.get("error", ""))


def _never_returns(body: Callable[[], int], said: int) -> None:
    """Run the body of a forked process and exit with what it returns; an error of ours goes to whoever forked it."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = body()
    except BaseException as error:
        os.write(said, f"error {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def _enter_namespace(sandbox: Sandbox, keep: list[int], cpu_seconds: float, work: Callable, said: int) -> int:
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    filesystem.leave_namespaces()
    first = os.fork()
    if not first:
        _never_returns(lambda: _be_first(sandbox, keep, cpu_seconds, work, said), said)
    os.write(said, f"first {first}\n".encode())
    _close_all_but([])
    return _exit_code(os.waitpid(first, 0)[1])


def _be_first(sandbox: Sandbox, keep: list[int], cpu_seconds: float, work: Callable, said: int) -> int:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    filesystem.enter(sandbox.visible, sandbox.uid)
    worker = os.fork()
    if not worker:
        _never_returns(lambda: _be_worker(sandbox, keep, cpu_seconds, work, said), said)
    _close_all_but([])
    while True:
        pid, status = os.wait()
        if pid == worker:
            return _exit_code(status)


def _enter_process(sandbox: Sandbox, keep: list[int], cpu_seconds: float, work: Callable, said: int) -> int:
    os.setsid()
    os.chdir(sandbox.scratch)
    return _be_worker(sandbox, keep, cpu_seconds, work, said)


def _be_worker(sandbox: Sandbox, keep: list[int], cpu_seconds: float, work: Callable, said: int) -> int:
    _close_all_but([*keep, said])
    set_limits(sandbox.limits, cpu_seconds, sandbox.uid)
    become(sandbox.uid, reads_all=sandbox.reads_all)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.close(said)
    try:
        work()
    except BaseException:
        return 1  # whatever the answers did to this process, the parent sees that the results are missing
    return 0


def _close_all_but(keep: list[int]) -> None:
    """Close every open file but these, and put nothing (/dev/null) at stdin, stdout and stderr."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    start = 3
    for number in sorted(keep):
        os.closerange(start, number)
        start = number + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _BY_SIGNAL - code


def _sweep(uid: int) -> None:
    """Kill what a worker left behind: as root, all processes of its user; otherwise, all that became our children."""
    if os.geteuid() == 0:
        killer = os.fork()
        if not killer:
            os.setresuid(uid, uid, uid)
            try:
                os.kill(-1, signal.SIGKILL)
            finally:
                os._exit(0)  # also where there was nobody to kill
        os.waitpid(killer, 0)
    deadline = time.monotonic() + SWEEP_SECONDS
    stopped: set[int] = set()
    while time.monotonic() < deadline:
        left = set(descendants([os.getpid()])) - {os.getpid()}
        # A stopped process cannot fork, and keeps its place among those that its user may have: once no new one turns
        # up, all can be killed without one of them replacing another.
        _signal(left, signal.SIGKILL if left <= stopped else signal.SIGSTOP)
        stopped |= left
        if not _reap():
            return


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue  # it ended meanwhile


def _reap() -> bool:
    """Take leave of the children that have ended; whether there are others."""
    while True:
        try:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.005)
                return True
        except ChildProcessError:
            return False


def _empty(folder: str) -> None:
    """Remove all that is in the folder; links are not followed."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
