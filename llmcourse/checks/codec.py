"""A probe's result as JSON: written by whoever ran the submission, read by whoever judges it.

JSON's own null, true, numbers and strings stand for themselves (1 and 1.0 stay apart); everything else is a list that
starts with its kind:

    ["list", [...]]  ["tuple", [...]]  ["set", [...]]  ["dict", [[key, value], ...]]  ["bytes", base64]
    ["tensor", dtype, [shape], base64]  ["array", dtype, [shape], base64]  ["object", "module.Type"]
    ["raised", [expected classes], [classes of what was raised]]

Only exact types are taken apart, with the type's own methods, so an object cannot lie about itself: an instance of a
subclass (of int, of Tensor, …) is an ["object"], which equals nothing.
"""

from __future__ import annotations

import base64
import collections
import json
import sys
from functools import lru_cache

from .probe import Raised

MAX_BYTES = 4_000_000
MAX_DEPTH = 40
MAX_INT_BITS = 4096

_DICTS = (dict, collections.Counter, collections.defaultdict, collections.OrderedDict)


def encode(value: object) -> object:
    """The JSON form of a probe's result. Never raises; what has no form, or is too large, is an ["object", why]."""
    try:
        return _encode(value, MAX_DEPTH, [MAX_BYTES])
    except _TooLarge:
        return ["object", f"something larger than {MAX_BYTES:,} bytes"]
    except RecursionError:
        return ["object", "something nested too deeply"]


class _TooLarge(Exception):
    pass


def _encode(value: object, depth: int, room: list[int]) -> object:
    kind = type(value)
    _spend(room, 8)
    if value is None or kind is bool or kind is float:
        return value
    if kind is int:
        small = int.bit_length(value) <= MAX_INT_BITS
        return value if small else ["object", f"an int of more than {MAX_INT_BITS} bits"]
    if kind is str:
        _spend(room, len(value))
        return value
    if kind is bytes or kind is bytearray:
        _spend(room, len(value))
        return ["bytes", _base64(bytes(value))]
    if depth == 0:
        return ["object", "something nested too deeply"]
    if kind is list or kind is tuple:
        return [kind.__name__, [_encode(item, depth - 1, room) for item in kind.__iter__(value)]]
    if kind is set or kind is frozenset:
        items = [_encode(item, depth - 1, room) for item in kind.__iter__(value)]
        return ["set", sorted(items, key=json.dumps)]
    if kind in _DICTS:
        pairs = dict.items(value)
        return ["dict", [[_encode(k, depth - 1, room), _encode(v, depth - 1, room)] for k, v in pairs]]
    if kind is Raised:
        return ["raised", list(value.expected), list(value.names)]
    return _encode_array(value, room)


def _encode_array(value: object, room: list[int]) -> object:
    """Tensors, numpy arrays and numpy numbers; anything else is an ["object"]. Neither library is imported for it."""
    kind = type(value)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
        return _encode_tensor(torch, value, room)
    if numpy is not None and kind is numpy.ndarray and value.dtype.kind in "biufc":
        _spend(room, value.nbytes)
        little = value.astype(value.dtype.newbyteorder("<"))
        return ["array", value.dtype.name, list(value.shape), _base64(little.tobytes())]
    if numpy is not None and kind in _numpy_numbers(numpy):  # also one that is falsy, such as np.int64(0)
        return _numpy_numbers(numpy)[kind](value)
    return ["object", type_name(kind)]


@lru_cache(maxsize=1)
def _numpy_numbers(numpy) -> dict[type, type]:
    """NumPy's own number types, and Python's that takes their values."""
    bases = {numpy.bool_: bool, numpy.integer: int, numpy.floating: float}
    kinds = set(numpy.sctypeDict.values())
    return {kind: plain for base, plain in bases.items() for kind in kinds if issubclass(kind, base)}


def _encode_tensor(torch, value, room: list[int]) -> object:
    if value.layout is not torch.strided or value.device.type == "meta" or value.is_quantized:
        return ["object", f"a {value.layout} tensor on {value.device}"]
    _spend(room, value.numel() * value.element_size())
    plain = torch.Tensor.detach(value).cpu().resolve_conj().resolve_neg()
    dense = plain.clone(memory_format=torch.contiguous_format).reshape(-1)  # .contiguous() keeps the strides of one number
    raw = dense.view(torch.uint8).numpy().tobytes() if dense.numel() else b""
    return ["tensor", str(value.dtype).removeprefix("torch."), list(value.shape), _base64(raw)]


def type_name(kind: type) -> str:
    """The type's name as a learner would write it: "int", "numpy.matrix", "MyCache"."""
    module = type.__getattribute__(kind, "__module__")
    name = type.__getattribute__(kind, "__qualname__").rpartition(".<locals>.")[2]
    return name if module in ("builtins", "__main__") else f"{module}.{name}"


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _spend(room: list[int], n_bytes: int) -> None:
    room[0] -= n_bytes
    if room[0] < 0:
        raise _TooLarge
