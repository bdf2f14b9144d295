"""Packed weights in one file, which the next process maps into its memory instead of packing again.

The file: 8 bytes with the length of a JSON header, the header, then every array on a page of its own. The header says how the
arrays are called, where they lie, of what kind the roles are, and the sha256 of all that follows.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from llmcourse.ops.numba.step import Stack
from llmcourse.ops.numba.weights import arrays_of, rebuilt

LAYOUT = 1  # raised when the order of bytes in tiles changes: files of another layout are packed anew
_PAGE = 4096
_AT_ONCE = 1 << 22


def write(file: Path, weights: Stack, kinds: dict[str, str], key: dict) -> None:
    """Write the file; it appears whole or not at all. `key` says what it was made from. Raises OSError."""
    entries, parts, end, known = {}, [], 0, {}
    for name, array in arrays_of(weights):
        if id(array) not in known:  # a tied head has two names
            known[id(array)] = {"dtype": array.dtype.str, "n": array.size, "at": end}
            parts.append(array)
            end += -(-array.nbytes // _PAGE) * _PAGE
        entries[name] = known[id(array)]
    digest = hashlib.sha256()
    for array in parts:
        digest.update(_filled(array))
    header = {"layout": LAYOUT, "key": key, "kinds": kinds, "arrays": entries, "sha256": digest.hexdigest(), "bytes": end}
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % _PAGE)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        with open(part, "wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for array in parts:
                out.write(_filled(array))
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def read(file: Path, key: dict) -> tuple[Stack, dict[str, str]] | None:
    """The weights, mapped, and the kinds; None where there is no file, one of another origin or layout, or a damaged one."""
    try:
        with open(file, "rb") as opened:
            start = 8 + int.from_bytes(opened.read(8), "little")
            if start > file.stat().st_size:
                return None
            header = json.loads(opened.read(start - 8))
            if header["layout"] != LAYOUT or header["key"] != key or file.stat().st_size != start + header["bytes"]:
                return None
            digest = hashlib.sha256()
            while chunk := opened.read(_AT_ONCE):
                digest.update(chunk)
        if digest.hexdigest() != header["sha256"]:
            return None
        mapped = np.memmap(file, np.uint8, "r").view(np.ndarray)
    except (OSError, ValueError, KeyError, TypeError):  # not there, cut short, or not ours
        return None
    arrays, known = {}, {}
    for name, entry in header["arrays"].items():
        at, size = start + entry["at"], entry["n"] * np.dtype(entry["dtype"]).itemsize
        if (at, size) not in known:  # a tied head and its embedding stay one array
            known[at, size] = mapped[at : at + size].view(entry["dtype"])
        arrays[name] = known[at, size]
    return rebuilt(arrays, header["kinds"]), header["kinds"]


def _filled(array: np.ndarray) -> bytes:
    """The array's bytes, with zeros up to the end of the page."""
    return array.tobytes() + bytes(-array.nbytes % _PAGE)
