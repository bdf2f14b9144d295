"""Notice when an answer calls what its exercise forbids, by whatever name it reached it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType, FrameType

from .operators import behind, refused
from .probe import Answer

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class whose attributes can be set
SWITCHED_OFF = "sys.setprofile"
COMPILER = "torch.compile"
# What an answer may call too, so that it stands for nobody. Not `run`: below it is whoever asked for the check.
_FRAMEWORK = {f"llmcourse.checks.{name}" for name in (
    "arrays", "catalog", "codec", "compare", "forbid", "limits", "operators", "probe", "rng", "wrong")}


@contextmanager
def watch(forbids: Iterable[str], answer: Answer, exercise: str) -> Iterator[list[str]]:
    """While the body runs, collect the forbidden names that the answer called.

    A profile hook sees every call of a Python or C function, so an alias (`from torch import softmax as s`) helps
    nobody. PyTorch's own operators are refused in its dispatcher, where no detour helps either (see operators), and
    methods of its tensors on their class. A call counts when the answer's own code stands behind it: `given` pieces and
    the probe itself may call anything. Importing a forbidden module is no call. A function whose module is not imported
    when the watch begins cannot be told from others of that module; forbid the module, or import it in the lab.
    """
    targets = _Targets(tuple(forbids))
    found: list[str] = []
    if not targets.names:
        yield found
        return
    found.extend(targets.handed_over(answer, exercise))
    who = _Callers(answer)

    def hook(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            name, caller = targets.of_python(frame), frame.f_back
        elif event == "c_call":
            name, caller = targets.of_c(argument), frame
        else:
            return
        if name and name not in found and who.are_the_answers(caller):
            found.append(name)

    def is_allowed() -> bool:
        return not who.are_the_answers(sys._getframe(2))

    before, before_in_threads = sys.getprofile(), threading.getprofile()
    with refused(behind(targets.names), is_allowed, found), _methods_refused(targets.methods, is_allowed, found):
        threading.setprofile(hook)
        sys.setprofile(hook)
        try:
            yield found
        finally:
            if sys.getprofile() is not hook:
                found.append(SWITCHED_OFF)
            sys.setprofile(before)
            threading.setprofile(before_in_threads)


class _Callers:
    """Tells the answer's calls from the course's own, by the namespaces of the frames behind them."""

    def __init__(self, answer: Answer):
        self.learner, self.thread = answer.globals_of(), threading.get_ident()
        self.course = {id(vars(module)) for name, module in list(sys.modules.items())
                       if name.startswith(("llmcourse.checks.", "llmcourse.given", "llmcourse_probes_"))
                       and name not in _FRAMEWORK and isinstance(module, type(sys))}

    def are_the_answers(self, frame: FrameType | None) -> bool:
        """Whether the learner's code is nearer behind this call than the lesson's own.

        In a thread with neither, such as an executor's, it is the answer's: the course starts none.
        """
        while frame is not None:
            if id(frame.f_globals) in self.learner:
                return True
            if id(frame.f_globals) in self.course:
                return False
            frame = frame.f_back
        return threading.get_ident() != self.thread


@contextmanager
def _methods_refused(methods: dict[tuple[type, str], str], is_allowed: Callable[[], bool],
                     found: list[str]) -> Iterator[None]:
    """Methods that a class inherits from C, where `map` and the like call them unseen: stand-ins on the class itself."""
    covered = [(kind, name, said) for (kind, name), said in methods.items()
               if kind.__flags__ & _HEAP_TYPE and name not in vars(kind)]
    for kind, name, said in covered:
        setattr(kind, name, _refused_method(getattr(kind, name), said, is_allowed, found))
    try:
        yield
    finally:
        for kind, name, _ in covered:
            delattr(kind, name)


def _refused_method(real: Callable, said: str, is_allowed: Callable[[], bool], found: list[str]) -> Callable:
    def method(*arguments, **named):
        if not is_allowed():
            if said not in found:
                found.append(said)
            raise RuntimeError(f"{said} may not be called here: write that part yourself")
        return real(*arguments, **named)

    return method


class _Targets:
    """The forbidden names, as what a profile hook can compare: code objects, C functions, module prefixes."""

    def __init__(self, names: tuple[str, ...]):
        self.names = names
        self.codes: dict[CodeType, str] = {}
        self.functions: dict[int, str] = {}
        self.methods: dict[tuple[type, str], str] = {}
        self.modules: dict[str, str] = {"torch._dynamo.eval_frame": COMPILER} if behind(names) else {}
        self._known: dict[str, str | None] = {}
        for name in names:
            self._add(name)

    def _add(self, name: str) -> None:
        owner, _, attribute = name.rpartition(".")
        value = _resolve(name)
        if value is None or isinstance(value, type(sys)):
            self.modules[name] = name
        elif isinstance(getattr(getattr(value, "_implementation", None), "__code__", None), CodeType):
            self.codes[value._implementation.__code__] = name  # NumPy's functions are objects around the Python ones
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
            inside = (said for n, said in self.modules.items() if module == n or module.startswith(n + "."))
            self._known[module] = next(inside, None)
        return self._known[module]


def _resolve(name: str) -> object:
    """The object that a dotted name means among the modules imported so far, None if there is none."""
    if name in sys.modules:
        return sys.modules[name]
    owner, _, attribute = name.rpartition(".")
    return getattr(_resolve(owner), attribute, None) if owner else None
