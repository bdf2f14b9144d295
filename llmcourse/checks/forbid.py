"""Notice when an answer calls what its exercise forbids, by whatever name it reached it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType, FrameType

from .probe import Answer

SWITCHED_OFF = "sys.setprofile"


@contextmanager
def watch(forbids: Iterable[str], answer: Answer, exercise: str) -> Iterator[list[str]]:
    """While the body runs, collect the forbidden names that the answer called; nothing is interrupted.

    A profile hook sees every call of a Python or C function, so an alias (`from torch import softmax as s`) helps
    nobody. A call counts when the answer's own code stands behind it: `given` pieces and the probe itself may call
    anything. A function whose module is not imported when the watch begins cannot be told from others of that module;
    forbid the module, or import it in the lab.
    """
    targets = _Targets(tuple(forbids))
    found: list[str] = []
    if not targets.names:
        yield found
        return
    found.extend(targets.handed_over(answer, exercise))
    learner = answer.globals_of()

    def hook(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            name, caller = targets.of_python(frame), frame.f_back
        elif event == "c_call":
            name, caller = targets.of_c(argument), frame
        else:
            return
        if name and name not in found and _is_learners(caller, learner):
            found.append(name)

    before, before_in_threads = sys.getprofile(), threading.getprofile()
    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        yield found
    finally:
        if sys.getprofile() is not hook:
            found.append(SWITCHED_OFF)
        sys.setprofile(before)
        threading.setprofile(before_in_threads)


def _is_learners(frame: FrameType | None, learner: set[int]) -> bool:
    """Whether the learner's code is nearer behind this call than the course's own."""
    while frame is not None:
        if id(frame.f_globals) in learner:
            return True
        if frame.f_globals.get("__name__", "").startswith(("llmcourse.checks", "llmcourse.given")):
            return False
        frame = frame.f_back
    return False


class _Targets:
    """The forbidden names, as what a profile hook can compare: code objects, C functions, module prefixes."""

    def __init__(self, names: tuple[str, ...]):
        self.names = names
        self.codes: dict[CodeType, str] = {}
        self.functions: dict[int, str] = {}
        self.methods: dict[tuple[type, str], str] = {}
        self.modules: tuple[str, ...] = ()
        self._known: dict[str, str | None] = {}
        for name in names:
            self._add(name)

    def _add(self, name: str) -> None:
        owner, _, attribute = name.rpartition(".")
        value = _resolve(name)
        if value is None or isinstance(value, type(sys)):
            self.modules += (name,)
        elif isinstance(getattr(value, "__code__", None), CodeType):
            self.codes[value.__code__] = name
        elif isinstance(value, type):
            self.codes.update({f.__code__: name for f in vars(value).values() if hasattr(f, "__code__")})
        elif isinstance(_resolve(owner), type):
            self.methods[_resolve(owner), attribute] = name
        else:
            self.functions[id(value)] = name

    def of_python(self, frame: FrameType) -> str | None:
        return self.codes.get(frame.f_code) or self._of_module(frame.f_globals.get("__name__"))

    def of_c(self, function: object) -> str | None:
        if id(function) in self.functions:
            return self.functions[id(function)]
        owner = getattr(function, "__self__", None)
        name = self._of_module(getattr(function, "__module__", None) or type(owner).__module__)
        if name or not self.methods:
            return name
        return next((said for (kind, method), said in self.methods.items()
                     if isinstance(owner, kind) and method == getattr(function, "__name__", "")), None)

    def handed_over(self, answer: Answer, exercise: str) -> list[str]:
        """Names of what the learner assigned instead of writing: `attention = torch.…`."""
        value = vars(answer)["_objects"].get(exercise)
        while isinstance(value, partial):
            value = value.func
        code = getattr(value, "__code__", None)
        name = self.codes.get(code) or self.functions.get(id(value))
        name = name or self._of_module(getattr(value, "__module__", None))
        return [name] if name else []

    def _of_module(self, module: object) -> str | None:
        if not isinstance(module, str):
            return None
        if module not in self._known:
            inside = (n for n in self.modules if module == n or module.startswith(n + "."))
            self._known[module] = next(inside, None)
        return self._known[module]


def _resolve(name: str) -> object:
    """The object that a dotted name means among the modules imported so far, None if there is none."""
    if name in sys.modules:
        return sys.modules[name]
    owner, _, attribute = name.rpartition(".")
    return getattr(_resolve(owner), attribute, None) if owner else None
