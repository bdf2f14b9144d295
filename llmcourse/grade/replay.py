"""`llmcourse.given` while a lab is graded: the lab's own pieces are recorded beside the solutions, replayed in a worker.

A probe may take a piece of its own lab to prepare an input (`given.train_bpe(...)` for a probe of `encode`). A worker must
not have that piece, which is another exercise's answer; it gets the results that the piece gave to the same probe.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Iterable
from types import FunctionType

import llmcourse.given
from llmcourse.checks.codec import encode
from llmcourse.errors import AuthoringError


class Recorder:
    """Calls of the lab's own given pieces, with their results, since the last `start`."""

    def __init__(self):
        self.calls: list[list] = []

    def start(self) -> None:
        """Forget what was recorded."""
        self.calls = []

    def call(self, name: str, arguments: tuple, named: dict) -> object:
        """Call the piece; the probe and the record get copies of their own."""
        value = getattr(self.pieces, name)(*arguments, **named)
        encoded = encode(value)
        if not is_plain(encoded):
            raise AuthoringError(f"a probe calls given.{name}, which returns {type(value).__name__}; a graded submission can "
                                 "only be given plain data: build the input in another way")
        self.calls.append([name, encoded])
        return copy.deepcopy(value)

    def install(self, lesson: str, names: Iterable[str], pieces: object) -> None:
        """Put recorded pieces into `llmcourse.given`; `pieces` has the real ones as attributes."""
        self.pieces = pieces
        install(lesson, names, self.call)


class Player:
    """The recorded results of one probe, handed out in the order in which they were recorded."""

    def __init__(self):
        self.calls: list[list] = []

    def start(self, calls: list[list]) -> None:
        """Go on with another probe's record."""
        self.calls = list(calls)

    def call(self, name: str, arguments: tuple, named: dict) -> object:
        """The next result; ImportError when the reference made no such call at this point."""
        if not self.calls or self.calls[0][0] != name:
            raise ImportError(f"llmcourse.given.{name} is an exercise of this lab: write it yourself")
        return decode(self.calls.pop(0)[1])

    def install(self, lesson: str, names: Iterable[str]) -> None:
        """Put replayed pieces into `llmcourse.given`."""
        install(lesson, names, self.call)


def install(lesson: str, names: Iterable[str], call: Callable) -> None:
    """Let `llmcourse.given` have these names, each going to call(name, args, kwargs).

    Their frames belong to the module of this lesson's given pieces, so what an exercise forbids is noticed as ever.
    """
    for name in names:
        space = {"__name__": f"llmcourse.given.lesson_{lesson}", "call": call, "name": name}
        setattr(llmcourse.given, name, FunctionType(_piece.__code__, space, name))


def _piece(*arguments, **named):
    return call(name, arguments, named)  # noqa: F821  (both names are in the namespace that `install` gives it)


def is_plain(encoded: object) -> bool:
    """Whether nothing of an encoded value was lost."""
    if not isinstance(encoded, list):
        return True
    kind = encoded[0]
    if kind == "dict":
        return all(is_plain(part) for pair in encoded[1] for part in pair)
    return kind != "object" and (kind not in ("list", "tuple", "set") or all(map(is_plain, encoded[1])))


def decode(encoded: object) -> object:
    """The value that `codec.encode` encoded; for what a trusted process encoded only."""
    if not isinstance(encoded, list):
        return encoded
    kind, content = encoded[0], encoded[1]
    if kind in ("list", "tuple", "set"):
        return {"list": list, "tuple": tuple, "set": set}[kind](map(decode, content))
    if kind == "dict":
        return {decode(key): decode(value) for key, value in content}
    if kind == "bytes":
        return base64.b64decode(content)
    return _decode_array(encoded)


def _decode_array(encoded: list) -> object:
    import numpy as np

    kind, dtype, shape, text = encoded
    raw = bytearray(base64.b64decode(text))
    if kind == "array":
        return np.frombuffer(raw, dtype).reshape(shape)
    import torch

    empty = torch.empty(shape, dtype=getattr(torch, dtype))
    return torch.frombuffer(raw, dtype=empty.dtype).reshape(shape) if raw else empty
