"""This machine's ceilings: measured once, kept in the cache folder, measured anew when asked."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from llmcourse.fetch import cache_dir
from llmcourse.measure.machine import machine_facts, memory_bandwidth, peak_flops
from llmcourse.measure.roofline import Ceilings

if TYPE_CHECKING:
    import torch

FILE = "ceilings.json"
_KEY_FACTS = ("cpu", "cores", "torch", "threads", "devices")  # what the numbers depend on
_METHOD = 1  # raise it when the way of measuring changes: what was kept before is then not used


def ceilings(
    device: str | torch.device = "cpu", dtype: str | torch.dtype = "float32", *, anew: bool = False
) -> Ceilings:
    """Bytes and FLOPs per second of `device`, in products of `dtype`.

    Kept in the cache folder by machine facts, torch's version and threads, so that a program that asks again gets the same
    numbers at once. `anew` measures again (about two seconds) and keeps that; so does `llmcourse doctor`.
    Raises DeviceUnavailable as the measurements do.
    """
    key, number = _key(device), str(dtype).removeprefix("torch.")
    known = {} if anew else _read().get(key, {})
    bandwidth = known.get("bytes_per_s") or memory_bandwidth(device)
    flops = known.get("flops_per_s", {}).get(number) or peak_flops(dtype, device)
    if anew or known.get("flops_per_s", {}).get(number) is None:
        keep(device, bandwidth, {number: flops})
    return Ceilings(bandwidth, flops)


def keep(device: str | torch.device, bytes_per_s: float, flops_per_s: dict[str, float]) -> None:
    """Keep what was measured for a device; dtypes that are not in `flops_per_s` keep what they had.

    A folder that cannot be written is no error: the numbers are measured again next time.
    """
    kept, key = _read(), _key(device)
    before = kept.get(key, {}).get("flops_per_s", {})
    kept[key] = {"bytes_per_s": bytes_per_s, "flops_per_s": {**before, **flops_per_s}}
    file = _file()
    part = file.with_name(f"{FILE}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
        os.replace(part, file)
    except OSError:
        with suppress(OSError):
            part.unlink()


def _file() -> Path:
    return cache_dir() / FILE


def _read() -> dict:
    """All that is kept, by key; {} where there is nothing, or nothing that can be read."""
    try:
        kept = json.loads(_file().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _key(device: str | torch.device) -> str:
    facts, name = machine_facts(), str(device)
    name = f"{name}:0" if name == "cuda" else name  # two names of the first card
    return json.dumps({"device": name, "method": _METHOD, **{name: facts.get(name) for name in _KEY_FACTS}})
