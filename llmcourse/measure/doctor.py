"""`llmcourse doctor`: what this machine and this installation have, what they can do, and how to get what is missing."""

from __future__ import annotations

import importlib
import json
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import llmcourse
from llmcourse.errors import CourseError
from llmcourse.measure.ceilings import keep
from llmcourse.measure.machine import machine_facts, memory_bandwidth, native_bfloat16, peak_flops

if TYPE_CHECKING:
    from rich.console import RenderableType

_PYTHONS = ((3, 10), (3, 13))
_DTYPES = ("float32", "bfloat16")
_EXTRAS = {
    "lab": ("jupyterlab", "ipykernel", "ipywidgets", "matplotlib", "jupytext", "nbclient", "transformers"),
    "test": ("pytest", "pytest-xdist", "nbval", "hypothesis"),
    "serve": ("fastapi", "uvicorn"),
}
_NEEDED_FOR = {"lab": "the notebooks", "test": "the tests", "serve": "the server of lesson 16"}


def report(measure: bool = True) -> dict:
    """Everything that `llmcourse doctor --json` prints; only plain data.

    Keys: llmcourse, python (version, executable, supported), torch (version, cuda, error), machine (machine_facts),
    devices (one per device: device, name, memory_bytes, native_bfloat16, bytes_per_s, flops_per_s by dtype, error),
    default (device and dtype that "auto" chooses), triton (version, usable, why), packages (versions by extra), cache
    (folder, items with what, path, bytes, state, note), missing (what, why, get). `measure` False leaves the
    measurements (about a second each) out.
    """
    found = {
        "llmcourse": llmcourse.__version__,
        "python": {
            "version": platform.python_version(),
            "executable": sys.executable,
            "supported": _PYTHONS[0] <= sys.version_info[:2] <= _PYTHONS[1],
        },
        "torch": _torch(),
        "machine": machine_facts(),
        "packages": {extra: {name: _version(name) for name in names} for extra, names in _EXTRAS.items()},
        "cache": _cache(),
    }
    works = found["torch"]["error"] is None
    found["devices"] = [_device(place, measure) for place in _places(found["machine"])] if works else []
    found["default"] = _default() if works else None
    found["triton"] = _triton(found["machine"]["devices"])
    found["missing"] = _missing(found)
    return found


def render(found: dict) -> RenderableType:
    """The report for people: a rich renderable, about a screen long."""
    from llmcourse.measure.doctor_view import view

    return view(found)


def _torch() -> dict:
    try:
        import torch
    except (ImportError, OSError) as error:  # OSError: a library of the wheel that the system cannot load
        return {"version": _version("torch"), "cuda": None, "error": str(error).splitlines()[0]}
    return {"version": torch.__version__, "cuda": torch.version.cuda, "error": None}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _places(machine: dict) -> list[dict]:
    return [{"device": "cpu", "name": machine["cpu"], "memory_bytes": machine["ram_bytes"]}, *machine["devices"]]


def _device(place: dict, measure: bool) -> dict:
    """`place` with what it can do, measured anew and kept for `ceilings`; a measurement that fails leaves its number None
    and says why."""
    where = place["device"]
    found = {**place, "native_bfloat16": native_bfloat16(where), "bytes_per_s": None, "flops_per_s": {}, "error": None}
    if measure:
        try:
            found["bytes_per_s"] = memory_bandwidth(where)
            for dtype in _DTYPES:
                found["flops_per_s"][dtype] = peak_flops(dtype, where)
            keep(where, found["bytes_per_s"], found["flops_per_s"])
        except CourseError as error:
            found["error"] = str(error)
    return found


def _default() -> dict:
    from llmcourse.model.load import choose_device, choose_dtype

    device = choose_device()
    return {"device": str(device), "dtype": str(choose_dtype("auto", device)).removeprefix("torch.")}


def _triton(accelerators: list[dict]) -> dict:
    version = _version("triton")
    has_cuda = any(place["device"].startswith("cuda") for place in accelerators)
    if version is None:
        why = "not installed; lessons before 14 do not need it"
    else:
        try:
            importlib.import_module("triton")
            why = "compiles kernels for the CUDA card" if has_cuda else "no CUDA card: its interpreter only (slow)"
        except ImportError as error:
            why = f"cannot be imported: {error}"
            has_cuda = False
    return {"version": version, "usable": version is not None and has_cuda, "why": why}


def _cache() -> dict:
    """What is in the cache folder. States: ok, missing, damaged. The GGUF is checked by its sha256."""
    from llmcourse.fetch import cache_dir, sha256_of
    from llmcourse.model.download import CONVERSION, DEFAULT_MODEL, GGUF

    folder = cache_dir()
    items = []
    for what, path in (
        ("model", folder / "models" / f"{DEFAULT_MODEL}-v{CONVERSION}"),
        ("model", folder / GGUF.file),
        ("text", folder / "text"),
        ("gpt2-vocab", folder / "gpt2-vocab"),
    ):
        state, note = ("ok", "") if path.exists() else ("missing", "")
        if state == "ok" and path.name == GGUF.file:
            state, note = ("ok", "sha256 right") if sha256_of(path) == GGUF.sha256 else ("damaged", "sha256 wrong")
        for file in sorted(path.glob("*.safetensors")) if path.is_dir() else ():
            if not _is_whole(file):
                state, note = "damaged", f"{file.name} is cut short"
        items.append({"what": what, "path": str(path), "bytes": _size(path), "state": state, "note": note})
    return {"folder": str(folder), "items": items}


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files if file.is_file())


def _is_whole(file: Path) -> bool:
    """Whether a safetensors file is as long as its header says (8 bytes of length, JSON header, data)."""
    with open(file, "rb") as opened:
        n_header = int.from_bytes(opened.read(8), "little")
        if n_header + 8 > file.stat().st_size:
            return False
        header = json.loads(opened.read(n_header))
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    return file.stat().st_size == 8 + n_header + max(ends, default=0)


def _missing(found: dict) -> list[dict]:
    """What is not there, why it matters, and the command that brings it."""
    lacks = []
    if not found["python"]["supported"]:
        versions = " to ".join(".".join(map(str, version)) for version in _PYTHONS)
        lacks.append(("Python", f"{found['python']['version']} is not tested", f"use Python {versions}"))
    if found["torch"]["error"]:
        lacks.append(("torch", found["torch"]["error"], "in the course's folder: python3 start.py"))
    for extra, packages in found["packages"].items():
        absent = [name for name, version in packages.items() if version is None]
        if absent:
            get = f"in the course's folder: pip install -c constraints.txt -e '.[{extra}]'"
            lacks.append((f"extra {extra}", f"for {_NEEDED_FOR[extra]}; not installed: {', '.join(absent)}", get))
    for item in found["cache"]["items"]:
        if item["state"] == "damaged":
            get = f"delete {item['path']}, then: llmcourse download {item['what']}"
            lacks.append((item["what"], item["note"], get))
        elif item["state"] == "missing" and not item["path"].endswith(".gguf"):  # only needed to convert once
            lacks.append((item["what"], "not fetched yet", f"llmcourse download {item['what']}"))
    return [dict(zip(("what", "why", "get"), row)) for row in lacks]
