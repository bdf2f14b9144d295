"""The near end of a benchmark: worker processes, and a moment of quiet before each is measured."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import psutil

HERE = Path(__file__).parent
BUSY_PERCENT, PATIENCE_S = 10, 20


class Side:
    """A worker process, loaded and waiting.

    Args:
        command: the worker's command line.
        facts: what it said about itself: side, version, dtype, load_s, …
    """

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(), cwd=HERE
        )
        self.facts = self._answer()

    @classmethod
    def of(cls, script: str, model: str, dtype: str, threads: int, mode: str = "") -> Side:
        """One of the workers beside this file, run by this Python."""
        return cls([sys.executable, str(HERE / script), model, dtype, "--threads", str(threads), "--mode", mode])

    @classmethod
    def of_line(cls, line: str) -> Side:
        """A worker as typed by a person: `PYTHON WORKER MODEL DTYPE`."""
        return cls(shlex.split(line))

    def generate(self, ids: list[int], n: int) -> dict:
        """Time n greedy tokens after a prompt: `ttft_s`, `itl_s` (list), `ids`."""
        print(json.dumps({"ids": ids, "n": n}), file=self.process.stdin, flush=True)
        return self._answer()

    def close(self) -> None:
        """End the worker."""
        self.process.stdin.close()
        self.process.wait()

    def _answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended early, with code {self.process.wait()}: {self.process.args}")
        return json.loads(line)


def environment() -> dict[str, str]:
    """This process's environment, with the project importable and no hub asked for anything.

    What `import llmcourse` set for its own threads is left out: a peer runs as its users run it, and ours sets it again.
    """
    path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
    own = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    return {**own, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}


def wait_for_quiet() -> float:
    """Wait until others use little of this machine (or patience ends). Returns percent of the CPUs in use then.

    Two threads that meet at every layer run ten times slower when one of them must share its core.
    """
    stop = time.monotonic() + PATIENCE_S
    while True:
        busy = psutil.cpu_percent(interval=0.5)
        if busy < BUSY_PERCENT or time.monotonic() > stop:
            return busy
