"""Reference code that probes use, while a lab is graded: recorded beside the solutions, replayed in a worker.

A probe may prepare an input with a piece of its own lab (`given.train_bpe(...)` for a probe of `encode`), or with a module
that its answers may not call. A worker must have neither, for either is another exercise's answer; it gets the results that
the reference got in the same probe. So only plain data can be prepared in this way.
"""

from __future__ import annotations

import base64
import copy
import importlib
import sys
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType

import llmcourse.given
from llmcourse.checks.codec import encode
from llmcourse.errors import AuthoringError


class Recorder:
    """Calls of reference code since the last `start`, as [name, encoded result].

    names: what the probes took, by module and name: a constant's encoded value, or None for what is called.
    """

    def __init__(self):
        self.calls: list[list] = []
        self.names: dict[str, dict[str, object]] = {}

    def start(self) -> None:
        """Forget the calls."""
        self.calls = []

    def install_given(self, lesson: str, pieces: dict[str, object]) -> None:
        """Let `llmcourse.given` have these pieces of the lab itself, recorded."""
        for name, real in pieces.items():
            setattr(llmcourse.given, name, _piece(f"llmcourse.given.lesson_{lesson}", name, self._recorded(name, real)))

    def install_modules(self, names: Iterable[str]) -> None:
        """Put a recorded stand-in before each of these modules: who imports it from now on gets that."""
        for name in names:
            real = importlib.import_module(name)
            self.names[name] = {}
            _put(name, _StandIn(name, lambda attribute, real=real: self._taken(real, attribute)))

    def _taken(self, real: ModuleType, attribute: str) -> object:
        value = getattr(real, attribute)
        if callable(value):
            self.names[real.__name__][attribute] = None
            return _piece(real.__name__, attribute, self._recorded(attribute, value))
        self.names[real.__name__][attribute] = _plain(encode(value), f"{real.__name__}.{attribute}")
        return value

    def _recorded(self, name: str, real: Callable) -> Callable:
        def call(arguments: tuple, named: dict) -> object:
            value = real(*arguments, **named)
            self.calls.append([name, _plain(encode(value), name)])
            return copy.deepcopy(value)

        return call


class Player:
    """The recorded results of one probe, handed out in the order in which they were recorded."""

    def __init__(self):
        self.calls: list[list] = []

    def start(self, calls: list[list]) -> None:
        """Go on with another probe's record."""
        self.calls = list(calls)

    def install_given(self, lesson: str, names: Iterable[str]) -> None:
        """Let `llmcourse.given` have these pieces of the lab itself, replayed."""
        for name in names:
            setattr(llmcourse.given, name, _piece(f"llmcourse.given.lesson_{lesson}", name, self._replayed(name)))

    def install_modules(self, names: dict[str, dict[str, object]]) -> None:
        """Put a stand-in with a recorder's names before each of these modules, which are never imported themselves."""
        for module, known in names.items():
            pieces = {name: _piece(module, name, self._replayed(name)) if value is None else decode(value)
                      for name, value in known.items()}
            importlib.import_module(module.rpartition(".")[0])
            _put(module, _StandIn(module, pieces.__getitem__))

    def _replayed(self, name: str) -> Callable:
        def call(arguments: tuple, named: dict) -> object:
            if not self.calls or self.calls[0][0] != name:
                raise ImportError(f"{name} is the course's own, and hidden while this lab is graded: write it yourself")
            return decode(self.calls.pop(0)[1])

        return call


class _StandIn(ModuleType):
    """A module whose public names come from a function; a name that it does not know is missing."""

    def __init__(self, name: str, take: Callable[[str], object]):
        super().__init__(name)
        self._take = take

    def __getattr__(self, attribute: str) -> object:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        try:
            return self._take(attribute)
        except KeyError:
            raise AttributeError(f"{self.__name__}.{attribute} is hidden while this lab is graded") from None


def _put(name: str, stand_in: ModuleType) -> None:
    """Make a module the one that imports find."""
    sys.modules[name] = stand_in
    owner, _, last = name.rpartition(".")
    setattr(sys.modules[owner], last, stand_in)


def _piece(module: str, name: str, call: Callable) -> FunctionType:
    """A function that goes to call(args, kwargs); its frames belong to `module`, so that a forbidden call is noticed."""
    return FunctionType(_template.__code__, {"__name__": module, "call": call}, name)


def _template(*arguments, **named):
    return call(arguments, named)  # noqa: F821  (the name is in the namespace that `_piece` gives it)


def _plain(encoded: object, name: str) -> object:
    """The encoded value, if nothing of it was lost; raises AuthoringError otherwise."""
    if not is_plain(encoded):
        raise AuthoringError(f"a probe uses {name}, which gives more than plain data; an answer that is graded must not have the "
                             "code behind it: prepare the input in another way")
    return encoded


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
