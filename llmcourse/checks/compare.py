"""Compare a submission's encoded result (codec) with the reference's, and say in words where they first differ.

`want` is trusted; `got` may come from a hostile process and is any JSON whatever: nothing in it is executed, and what
does not follow the format is a wrong type.
"""

from __future__ import annotations

import base64
import binascii
import math
from dataclasses import dataclass

from .arrays import first_difference, read_array
from .probe import Tolerance

OK, RETURNED_NONE = "ok", "returned None"
WRONG_TYPE, WRONG_SHAPE, WRONG_VALUES = "wrong type", "wrong shape", "wrong values"
MAX_SHOWN = 60


@dataclass(frozen=True)
class Difference:
    """The first difference: its kind, where it is ("[2]['ttft']", empty for the whole), and what was got and wanted."""

    status: str
    where: str
    got: str
    want: str

    def __str__(self) -> str:
        place = f"at result{self.where}: " if self.where else ""
        return f"{place}got {self.got}, want {self.want}"


def compare(got: object, want: object, tolerance: Tolerance) -> Difference | None:
    """None when `got` is what is wanted, otherwise the first difference. Both are results of `codec.encode`."""
    try:
        return _compare(got, want, "", tolerance)
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError, RecursionError, binascii.Error):
        return Difference(WRONG_TYPE, "", "a result that cannot be read", describe(want))


def _compare(got: object, want: object, where: str, tolerance: Tolerance) -> Difference | None:
    kind, wanted = _kind(got), _kind(want)
    if kind == "int" and wanted == "float":
        kind = "float"
    if kind != wanted:
        return Difference(RETURNED_NONE if got is None else WRONG_TYPE, where, describe(got), describe(want))
    if kind in ("tensor", "array"):
        return _compare_arrays(got, want, where, tolerance)
    if kind in ("list", "tuple"):
        return _compare_sequences(got[1], want[1], where, kind, tolerance)
    if kind == "dict":
        return _compare_dicts(got[1], want[1], where, tolerance)
    if kind == "float":
        same = _close(got, want, tolerance)
    elif kind == "str":
        return _compare_text(got, want, where)
    elif kind == "raised":  # what is expected is the judge's own word; what was raised, the other's
        same = _is_expected(got[2], want[1]) == _is_expected(want[2], want[1])
    elif kind == "object":
        same = False
    else:
        same = got == want
    return None if same else Difference(WRONG_VALUES, where, describe(got), describe(want))


def _kind(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, list):
        tag = value[0]
        return tag if tag in ("list", "tuple", "set", "dict", "bytes", "tensor", "array", "raised") else "object"
    return type(value).__name__


def _close(got: float, want: float, tolerance: Tolerance) -> bool:
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    if math.isinf(want) or math.isinf(got):
        return got == want
    return abs(got - want) <= tolerance.atol + tolerance.rtol * abs(want)


def _is_expected(raised: list, expected: list) -> bool:
    return any(name in expected for name in raised)


def _compare_arrays(got: list, want: list, where: str, tolerance: Tolerance) -> Difference | None:
    ours, theirs = read_array(got), read_array(want)
    if ours.shape != theirs.shape:
        return Difference(WRONG_SHAPE, where, str(list(ours.shape)), str(list(theirs.shape)))
    if ours.dtype != theirs.dtype:
        return Difference(WRONG_TYPE, where, f"a {ours.dtype} {ours.kind}", f"a {theirs.dtype} {theirs.kind}")
    index = first_difference(ours, theirs, tolerance)
    if index is None:
        return None
    place = f"{where}[{', '.join(map(str, index))}]" if index else where
    return Difference(WRONG_VALUES, place, ours.shown(index), theirs.shown(index))


def _compare_sequences(got: list, want: list, where: str, kind: str, tolerance: Tolerance) -> Difference | None:
    for i, (mine, wanted) in enumerate(zip(got, want)):
        found = _compare(mine, wanted, f"{where}[{i}]", tolerance)
        if found:
            return found
    if len(got) == len(want):
        return None
    lengths = [f"a {kind} of {len(items)}{' item' if len(items) == 1 else ' items'}" for items in (got, want)]
    common = min(len(got), len(want))
    agree = f" (the first {common} agree)" if common else ""
    return Difference(WRONG_VALUES, where, lengths[0], lengths[1] + agree)


def _compare_dicts(got: list, want: list, where: str, tolerance: Tolerance) -> Difference | None:
    ours = {repr(key): (key, value) for key, value in got}
    theirs = {repr(key): (key, value) for key, value in want}
    for name, (key, wanted) in theirs.items():
        place = f"{where}[{_text(key)}]"
        if name not in ours:
            return Difference(WRONG_VALUES, place, "no such key", describe(wanted))
        found = _compare(ours[name][1], wanted, place, tolerance)
        if found:
            return found
    for name, (key, value) in ours.items():
        if name not in theirs:
            return Difference(WRONG_VALUES, f"{where}[{_text(key)}]", describe(value), "no such key")
    return None


def _compare_text(got: str, want: str, where: str) -> Difference | None:
    if got == want:
        return None
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    if at == 0 or max(len(got), len(want)) <= MAX_SHOWN:
        return Difference(WRONG_VALUES, where, _text(got), _text(want))
    return Difference(WRONG_VALUES, f"{where}[{at}:]", _text(got[at:]), _text(want[at:]))


def describe(value: object) -> str:
    """An encoded value in a few words: small values as they are, large ones by type and size."""
    kind = _kind(value)
    if kind == "raised":
        return value[2][0].rpartition(".")[2] if value[2] else "no error"
    if kind == "object":
        return str(value[1])[:MAX_SHOWN] if len(value) > 1 else "something unreadable"
    if kind in ("tensor", "array"):
        return f"a {str(value[1])[:20]} {kind} of shape {str(value[2])[:40]}"
    text = _text(value)
    if len(text) <= MAX_SHOWN:
        return text
    return f"a {kind} of {len(value[1])} items" if kind in ("list", "tuple", "set", "dict") else text[:MAX_SHOWN] + "…"


def _text(value: object) -> str:
    """Python source for an encoded value, cut off where it grows long."""
    kind = _kind(value)
    if kind in ("list", "tuple", "set"):
        parts = _joined(value[1], lambda item: _text(item))
        opening, closing = {"list": "[]", "tuple": "()", "set": "{}"}[kind]
        return opening + parts + ("," if kind == "tuple" and len(value[1]) == 1 else "") + closing
    if kind == "dict":
        return "{" + _joined(value[1], lambda pair: f"{_text(pair[0])}: {_text(pair[1])}") + "}"
    if kind == "bytes":
        return _short(repr(base64.b64decode(value[1])))
    if kind in ("tensor", "array", "object", "raised"):
        return describe(value)
    return _short(repr(value))


def _joined(items: list, show) -> str:
    parts: list[str] = []
    for item in items:
        parts.append(show(item))
        if sum(map(len, parts)) > MAX_SHOWN:
            return ", ".join([*parts, "…"])
    return ", ".join(parts)


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


