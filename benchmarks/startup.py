"""How long the package takes to import, and `llmcourse --help` to answer."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from benchmarks.sides import environment, wait_for_quiet

COMMANDS = {
    "python, doing nothing": ["-c", "pass"],
    "import llmcourse": ["-c", "import llmcourse"],
    "llmcourse --help": ["-m", "llmcourse", "--help"],
    "llmcourse tokenize": ["-m", "llmcourse", "tokenize", "one two three"],
    "import torch": ["-c", "import torch"],
    "from llmcourse import Engine": ["-c", "from llmcourse import Engine"],
}


def run(rounds: int) -> dict:
    """Seconds of whole processes, in turns, after one round that is thrown away (files come into the page cache)."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(rounds + 1):
        for name, arguments in COMMANDS.items():
            wait_for_quiet()
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, env=environment(), stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)  # fmt: skip
            if number:
                seconds[name].append(round(time.perf_counter() - start, 4))
    return {"rounds": rounds, "seconds": seconds, "median_s": {name: median(times) for name, times in seconds.items()}}
