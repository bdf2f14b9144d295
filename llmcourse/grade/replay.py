"""Reference code that probes use, while a lab is graded: recorded beside the solutions, replayed in a worker.

A probe may prepare an input with a piece of its own lab (`given.train_bpe(...)` for a probe of `encode`), or with a
module that its answers may not call. A worker must have neither, for either is another exercise's answer; it gets the
results that the reference got in the same probe. So only plain data can be prepared in this way.
"""

from __future__ import annotations

import base64
import copy
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType

import llmcourse.given
from llmcourse.checks.codec import encode
from llmcourse.errors import AuthoringError


class HiddenCode(ImportError):
    """A submission called reference code that it may not have."""


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
        """Put a recorded stand-in before each of these imported modules: who imports it from now on gets that."""
        for name in names:
            real = sys.modules[name]
            self.names[name] = {}
            stand_in = _StandIn(name, lambda attribute, real=real: self._taken(real, attribute))
            if hasattr(real, "__path__"):
                stand_in.__path__ = real.__path__
            _put(name, stand_in)

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

    def install_modules(self, hidden: Iterable[str], names: dict[str, dict[str, object]]) -> None:
        """Put a stand-in before each of these modules and what is in them; they are never imported themselves.

        Any import of them succeeds, as a lab's import cell needs for its demonstrations; a call is refused unless it
        was recorded. names: what a recorder saw.
        """
        sys.meta_path.insert(
            0, _Finder(tuple(hidden), lambda module, name: self._taken(names.get(module, {}), module, name))
        )

    def _taken(self, known: dict[str, object], module: str, name: str) -> object:
        if known.get(name) is not None:
            return decode(known[name])
        return _piece(module, name, self._replayed(f"{module}.{name}" if name not in known else name))

    def _replayed(self, name: str) -> Callable:
        def call(arguments: tuple, named: dict) -> object:
            if not self.calls or self.calls[0][0] != name:
                raise HiddenCode(f"{name} is hidden while this lab is graded")
            return decode(self.calls.pop(0)[1])

        return call


class _StandIn(ModuleType):
    """A module whose public names come from a function."""

    def __init__(self, name: str, take: Callable[[str], object]):
        super().__init__(name)
        self._take = take

    def __getattr__(self, attribute: str) -> object:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return self._take(attribute)


class _Finder:
    """Finds stand-ins for hidden modules, before Python looks for the real ones."""

    def __init__(self, hidden: tuple[str, ...], take: Callable[[str, str], object]):
        self.hidden, self.take = hidden, take

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if inside(name, self.hidden) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name, partial(self.take, spec.name))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: there is no code behind it."""


def inside(name: str, modules: Iterable[str]) -> bool:
    """Whether a module is one of these or in one of them."""
    return any(name == one or name.startswith(one + ".") for one in modules)


def exposed(hidden: Iterable[str]) -> list[str]:
    """Which of these modules, or of those in them, are imported for real."""
    hidden = tuple(hidden)
    return sorted(
        name for name, module in sys.modules.items() if inside(name, hidden) and not isinstance(module, _StandIn)
    )


def _put(name: str, stand_in: ModuleType) -> None:
    """Make a module the one that imports find."""
    sys.modules[name] = stand_in
    owner, _, last = name.rpartition(".")
    setattr(sys.modules[owner], last, stand_in)


def _piece(module: str, name: str, call: Callable) -> FunctionType:
    """A function that goes to call(args, kwargs); its frames are of `module`, so that a forbidden call is noticed."""
    code = _template.__code__.replace(co_name=f"{module}.{name}")  # code that is equal would be taken for the same
    piece = FunctionType(code, {"__name__": module, "call": call}, name)
    piece.__mro_entries__ = lambda bases: ()  # a class of a demonstration may be derived from it, and gets nothing of it
    return piece


def _template(*arguments, **named):
    return call(arguments, named)  # noqa: F821  (the name is in the namespace that `_piece` gives it)


def _plain(encoded: object, name: str) -> object:
    """The encoded value, if nothing of it was lost; raises AuthoringError otherwise."""
    if not is_plain(encoded):
        raise AuthoringError(
            f"a probe uses {name}, which gives more than plain data; an answer that is graded must not have the "
            "code behind it: prepare the input in another way"
        )
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
