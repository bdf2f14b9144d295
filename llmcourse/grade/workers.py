"""Where the parent gets untrusted workers: `ForkServer` (Linux, warm) and `Spawner` (anywhere, a new Python for each).

A worker of either kind: `line(seconds)` reads its next line, `end()` kills it with all that it left and says how it
ended.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from llmcourse.errors import CourseError

from .limits import Limits
from .child_process import Child, Silent, bare_environment, command
from .filesystem import SCRATCH
from .sandbox import NAMESPACE, Sandbox

MAX_BYTES = 8 << 20
READY_SECONDS, END_SECONDS, LAST_WORDS_SECONDS = 120.0, 30.0, 2.0
_CHUNK = 1 << 16


class TooMuch(Exception):
    """A worker sent more than it may."""


class WorkerLost(CourseError):
    """A worker, or the server that forks them, is gone through no fault of the submission."""


@dataclass(frozen=True)
class WorkerSetup:
    """What the workers of one lab start from. lab: see worker.PreparedLab.load; cache: where models and vocabularies are."""

    root: Path
    cache: Path
    lab: dict
    max_bytes: int = MAX_BYTES


def can_fork() -> bool:
    """Whether a warm fork is safe here. (macOS has fork, but its system libraries break in the child.)"""
    return sys.platform.startswith("linux")


class ForkServer:
    """The parent's side of fork_server.py: one worker at a time."""

    def __init__(self, setup: WorkerSetup, sandbox: Sandbox, folder: Path):
        """folder: one of the grader's own, from which the server runs."""
        self.setup, self.sandbox = setup, sandbox
        home = SCRATCH if sandbox.tier == NAMESPACE else sandbox.scratch
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                command("llmcourse.grade.fork_server"),
                stdin=subprocess.PIPE,
                cwd=folder,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env=bare_environment(str(setup.root), home, str(setup.cache)),
            )
            config = {"sandbox": asdict(sandbox), "lab": setup.lab, "socket": theirs.fileno()}
        self.socket = ours
        with self.process.stdin as pipe:
            pipe.write(json.dumps(config).encode() + b"\n")
        self.ready = self._hear(READY_SECONDS)
        if self.ready.get("threads", 1) != 1:
            self.close()
            raise CourseError(
                f"what lab {setup.lab['lesson']} imports starts threads, and then nothing can be forked safely"
            )

    def _hear(self, seconds: float) -> dict:
        ready, _, _ = select.select([self.socket], [], [], seconds)
        message = self.socket.recv(_CHUNK) if ready else b""
        if not message:
            self.close()
            raise WorkerLost("the grader's own fork server died or hangs")
        return json.loads(message)

    def start(self, payload: dict, cpu_seconds: float) -> ForkedWorker:
        """A worker on this payload."""
        answer, results = os.pipe()
        with tempfile.TemporaryFile() as file:
            file.write(json.dumps(payload).encode())
            file.seek(0)
            socket.send_fds(self.socket, [b"S%f" % cpu_seconds], [file.fileno(), results])
        os.close(results)
        return ForkedWorker(self, answer)

    def close(self) -> None:
        """End the server and whatever it runs."""
        self.socket.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class ForkedWorker:
    """One worker of a ForkServer."""

    server: ForkServer
    results: int
    buffer: bytearray = field(default_factory=bytearray)
    n_bytes: int = 0

    def line(self, seconds: float) -> bytes:
        """Its next line, b"" at its end; raises Silent after `seconds`, TooMuch where it sends more than it may."""
        deadline = time.monotonic() + seconds
        end = self.buffer.find(b"\n")
        while end < 0:
            left = deadline - time.monotonic()  # asked each time: a byte now and then must not make it longer
            if not select.select([self.results], [], [], max(left, 0))[0] or left < 0:
                raise Silent
            chunk = os.read(self.results, _CHUNK)
            if not chunk:
                return b""
            self.n_bytes += len(chunk)
            if self.n_bytes > self.server.setup.max_bytes:
                raise TooMuch
            found = chunk.find(b"\n")
            end = len(self.buffer) + found if found >= 0 else -1
            self.buffer += chunk
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        return line

    def end(self, *, wait: bool = False) -> str:
        """End it and say how it ended. wait: let it end by itself first, so that one learns how it did."""
        os.close(self.results)
        if not (wait and select.select([self.server.socket], [], [], LAST_WORDS_SECONDS)[0]):
            self.server.socket.send(b"K")
        told = self.server._hear(END_SECONDS)
        if told["error"]:
            raise WorkerLost(f"no worker can be started: {told['error']}")
        return told["ended"]


class Spawner:
    """Starts a new, cold Python for each worker: timeouts and the system's own limits are all that holds it."""

    def __init__(self, setup: WorkerSetup, limits: Limits):
        self.setup, self.limits = setup, limits

    def start(self, payload: dict, cpu_seconds: float) -> SpawnedWorker:
        """A worker on this payload."""
        return SpawnedWorker(self, payload, cpu_seconds)

    def close(self) -> None:
        """Nothing is left between two workers."""


class SpawnedWorker:
    """One worker of a Spawner."""

    def __init__(self, spawner: Spawner, payload: dict, cpu_seconds: float):
        setup = spawner.setup
        self.scratch, self.max_bytes, self.n_bytes = tempfile.mkdtemp(), setup.max_bytes, 0
        config = {"lab": setup.lab, "limits": asdict(spawner.limits), "cpu_seconds": cpu_seconds}
        self.child = Child(
            "llmcourse.grade.worker",
            config,
            bare_environment(str(setup.root), self.scratch, str(setup.cache)),
            quiet=True,
            cwd=self.scratch,
        )
        try:
            self.child.send(payload)
        except OSError:
            pass  # it is dead already: its first line, which will not come, says so

    def line(self, seconds: float) -> bytes:
        """Its next line, b"" at its end; raises Silent after `seconds`, TooMuch where it sends more than it may."""
        line = self.child.line(seconds)
        self.n_bytes += len(line)
        if self.n_bytes > self.max_bytes:
            raise TooMuch
        return line

    def end(self, *, wait: bool = False) -> str:
        """End it and say how it ended. wait: let it end by itself first, so that one learns how it did."""
        if wait:
            try:
                self.child.process.wait(LAST_WORDS_SECONDS)
            except subprocess.TimeoutExpired:
                pass  # it closed its results and goes on: now it is killed
        self.child.close()
        shutil.rmtree(self.scratch, ignore_errors=True)
        code = self.child.process.returncode
        return f"signal {-code}" if code < 0 else f"exit status {code}"
