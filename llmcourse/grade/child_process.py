"""The parent's end of its processes: `Child` (one that talks in lines, on any system) and how each is started."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time

from llmcourse.errors import CourseError
from llmcourse.workbook.course import PACKAGE

END_SECONDS, DRAIN_SECONDS = 10.0, 1.0
MAX_WAITING_LINES, MAX_LINE = 1000, 64 << 20
_BOOT = (
    "import sys; root, module = sys.argv[1:]; root in sys.path or sys.path.insert(0, root); "
    "__import__(module, fromlist=['main']).main()"
)
_ONE_THREAD = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "RAYON_NUM_THREADS",
    )
}


class Silent(Exception):
    """A process said nothing in the time that it had."""


def command(module: str) -> list[str]:
    """Runs `module.main()` of this very package in an isolated Python."""
    return [sys.executable, "-I", "-c", _BOOT, str(PACKAGE.parent), module]


def trusted_environment(root: str) -> dict[str, str]:
    """The present environment, for one thread and this course."""
    return {**os.environ, **_ONE_THREAD, "LLMCOURSE_ROOT": root}


def bare_environment(root: str, home: str, cache: str) -> dict[str, str]:
    """Nothing of the present environment but what a program needs to start."""
    needed = {
        name: os.environ[name]
        for name in ("SYSTEMROOT", "COMSPEC", "PATHEXT", "NUMBER_OF_PROCESSORS", "LD_LIBRARY_PATH")
        if name in os.environ
    }
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "HOME": home,
        "USERPROFILE": home,
        "TMPDIR": home,
        "TEMP": home,
        "TMP": home,
        "LLMCOURSE_ROOT": root,
        "LLMCOURSE_CACHE": cache,
        "HF_HUB_OFFLINE": "1",
        **needed,
        **_ONE_THREAD,
    }


class Child:
    """A process that reads JSON lines and writes lines; it must be closed. Raises OSError when it is gone."""

    def __init__(
        self,
        module: str,
        config: dict,
        env: dict[str, str] | None = None,
        *,
        quiet: bool = False,
        cwd: str | None = None,
    ):
        self.process = subprocess.Popen(
            command(module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=cwd,
            env=env,
            stderr=subprocess.DEVNULL if quiet else None,
            start_new_session=os.name == "posix",
        )
        self._lines: queue.Queue[bytes] = queue.Queue(MAX_WAITING_LINES)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.send(config)

    def _listen(self) -> None:
        line = b"\n"
        while line:
            line = self.process.stdout.readline(MAX_LINE)
            self._lines.put(line)

    def send(self, message: dict) -> None:
        """One JSON line."""
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def line(self, seconds: float) -> bytes:
        """The next line, b"" at the end of all; raises Silent after `seconds`."""
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            raise Silent from None

    def close(self) -> None:
        """Kill it, with all that it started and that is still in its group."""
        if os.name == "posix":
            try:
                os.killpg(self.process.pid, 9)
            except (ProcessLookupError, PermissionError):
                self.process.kill()
        else:
            self.process.kill()
        self.process.wait(END_SECONDS)
        deadline = time.monotonic() + DRAIN_SECONDS
        while self._listener.is_alive() and time.monotonic() < deadline:  # it may be waiting for room
            try:
                self._lines.get(timeout=0.01)
            except queue.Empty:
                continue
        if self._listener.is_alive():
            return  # a process that got away holds the other end: the thread ends when that one does
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                continue  # what was still to be written has no reader any more


def run_trusted(module: str, request: dict, root: str) -> dict:
    """Run one of our own modules on a request and return what it says; raises CourseError with its message."""
    done = subprocess.run(
        command(module),
        input=json.dumps(request).encode(),
        stdout=subprocess.PIPE,
        env=trusted_environment(root),
        start_new_session=os.name == "posix",
    )
    if done.returncode:
        raise CourseError(f"the grader's own {module.rpartition('.')[2]} process ended with code {done.returncode}")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise CourseError(answer["error"])
    return answer
