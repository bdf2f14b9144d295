"""The warm fork server: imports what a lab needs once, then forks a shut-in worker for each request.

It is trusted but sees nothing of the submissions: the parent sends two open files with each request (the payload to
read, the pipe to answer on) that only the worker uses, so that nothing of one submission is in the memory of the next.
It has one thread, and runs no torch operation before a fork: both would break its children.

    parent → server    S + (payload, results, cpu seconds)    K: kill the worker    end of file: stop
    server → parent    {"ready": …} once, then for each worker {"ended": "signal 9", "error": why it could not start}
"""

from __future__ import annotations

import array
import gc
import json
import os
import select
import signal
import socket
import sys

from .limits import Limits
from .filesystem import VisibleFiles
from .sandbox import Sandbox, SandboxedWorker, start
from .syscalls import PR_SET_CHILD_SUBREAPER, prctl

FIRST_LOOK_SECONDS, LOOK_SECONDS = 0.2, 0.05
START, KILL = b"S", b"K"


def main() -> None:
    """Serve the parent until it goes away; the first line on standard input is the configuration."""
    config = json.loads(sys.stdin.readline())
    sandbox = _sandbox(config["sandbox"])
    parent = socket.socket(fileno=config["socket"])
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    from .replay import exposed
    from .worker import PreparedLab  # what it imports, and how long that takes, is part of being warm

    lab = PreparedLab.load(config["lab"])
    gc.collect()
    gc.freeze()
    waker, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake)
    _say(
        parent,
        {
            "ready": True,
            "threads": len(os.listdir("/proc/self/task")),
            "exposed": exposed(config["lab"]["secrets"])[:99],
        },
    )
    while True:
        request, files = _receive(parent)
        if not request:
            return
        if request[:1] == START:
            _serve(parent, waker, sandbox, lab, request, files)


def _sandbox(config: dict) -> Sandbox:
    visible = config["visible"] and VisibleFiles(**{k: tuple(v) if isinstance(v, list) else v for k, v in config["visible"].items()})
    return Sandbox(**{**config, "limits": Limits(**config["limits"]), "visible": visible})


def _receive(parent: socket.socket) -> tuple[bytes, list[int]]:
    """One request and the files that came with it."""
    data, ancillary, _, _ = parent.recvmsg(64, socket.CMSG_SPACE(2 * 4))
    files = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            files.frombytes(content)
    return data, list(files)


def _serve(parent: socket.socket, waker: int, sandbox: Sandbox, lab, request: bytes, files: list[int]) -> None:
    """One worker, from its start to when nothing of it is left."""
    payload, results = files
    cpu_seconds = float(request[1:])
    running = start(sandbox, files, cpu_seconds, lambda: lab.work(read_all(payload), results))
    os.close(payload)
    os.close(results)
    _say(parent, {"ended": _watch(parent, waker, running), "error": running.error})


def _watch(parent: socket.socket, waker: int, running: SandboxedWorker) -> str:
    """Wait until nothing of the worker is left, and say how it ended. The parent's death or wish kills it."""
    poll = select.poll()
    for source in (parent.fileno(), waker):
        poll.register(source, select.POLLIN | select.POLLHUP)
    wait = FIRST_LOOK_SECONDS
    while True:
        ended = running.ended(wait=False)
        if ended is not None:
            return ended
        woken = dict(poll.poll(wait * 1000))
        if waker in woken:
            os.read(waker, 4096)
        elif parent.fileno() in woken:
            _receive(parent)  # an order to kill, or the end of file that the parent's death leaves
            running.kill()
            return running.ended(wait=True)
        elif running.memory() > running.sandbox.limits.memory:
            running.kill()
            running.ended(wait=True)
            return f"it used more than {running.sandbox.limits.memory >> 20:,} MiB of memory"
        wait = LOOK_SECONDS


def read_all(file: int) -> bytes:
    """The content of an open file from its start; whoever else has it open may be elsewhere in it."""
    return os.pread(file, os.fstat(file).st_size, 0)


def _say(parent: socket.socket, message: dict) -> None:
    parent.sendall(json.dumps(message).encode() + b"\n")
