"""What a lesson's probes are written with: `@probe`, `exercise(...)`, `raises`, and the `answer` that they receive."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType

from llmcourse.errors import AuthoringError, CourseError

PROBE_SECONDS = 5.0


class NotWritten(CourseError):
    """The submission has no such function or class."""


@dataclass(frozen=True)
class Exercise:
    """What is said about one exercise besides its probes.

    name: of the function or class that the learner writes.
    hints: three texts: a nudge, the formula, the steps.
    forbids: dotted names that the answer may not call: a function ("torch.softmax"), or a module with all in it.
    """

    name: str
    hints: tuple[str, ...]
    forbids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tolerance:
    """How far a float may be from the reference's: |got - want| <= atol + rtol * |want|; integers are always exact."""

    rtol: float = 1e-4
    atol: float = 1e-5


@dataclass(frozen=True)
class Probe:
    """One graded question: `function(answer, rng)` calls the learner's code on drawn inputs and returns plain data."""

    lesson: str
    exercise: str
    name: str
    function: Callable
    points: float
    hint: str
    hidden: bool
    tolerance: Tolerance
    seconds: float

    @property
    def id(self) -> str:
        """For example "01.merge_pair/overlapping_pairs"."""
        return f"{self.lesson}.{self.exercise}/{self.name}"

    @property
    def title(self) -> str:
        """The probe's name as words."""
        return self.name.replace("_", " ")


@dataclass
class Registered:
    """What one module has declared so far, in order."""

    exercises: dict[str, Exercise] = field(default_factory=dict)
    probes: dict[str, Probe] = field(default_factory=dict)


_MODULES: dict[str, Registered] = {}


def registered(module: str) -> Registered:
    """Everything that the module of this name declared with `exercise` and `@probe`."""
    return _MODULES.setdefault(module, Registered())


def registered_by_lesson(module: str) -> Registered:
    """The same for a lesson's module together with the modules that hold more of its probes, `module_…`."""
    everything = Registered()
    for name, one in _MODULES.items():
        if name == module or name.startswith(f"{module}_"):
            everything.exercises.update(one.exercises)
            twice = everything.probes.keys() & one.probes.keys()
            if twice:
                raise AuthoringError(f"two probes of {module} are named {min(twice)!r}: rename one")
            everything.probes.update(one.probes)
    return everything


def exercise(name: str, *, hints: Iterable[str], forbids: Iterable[str] = ()) -> None:
    """Declare an exercise of this module; in the order of the lab, before its probes."""
    hints = tuple(hints)
    if len(hints) != 3 or not all(hints):
        raise AuthoringError(f"exercise {name!r} needs three hints (a nudge, the formula, the steps), got {len(hints)}")
    registered(sys._getframe(1).f_globals["__name__"]).exercises[name] = Exercise(name, hints, tuple(forbids))


def probe(exercise: str, *, hint: str, points: float = 1, hidden: bool = False, rtol: float = Tolerance.rtol,
          atol: float = Tolerance.atol, exact: bool = False, seconds: float = PROBE_SECONDS) -> Callable:
    """Turn `def name(answer, rng): return plain_data` into a probe of `exercise`.

    hint: shown when the values are wrong; names the mechanism that this probe isolates.
    rtol, atol: for floats; exact=True sets both to 0.
    seconds: after which the submission is stopped.
    """
    if not hint or points <= 0:
        raise AuthoringError(f"a probe of {exercise!r} needs a hint and more than 0 points")
    tolerance = Tolerance(0.0, 0.0) if exact else Tolerance(rtol, atol)

    def register(function: Callable) -> Callable:
        ours = registered(function.__module__).probes
        name = function.__name__
        if name in ours and ours[name].function.__code__.co_firstlineno != function.__code__.co_firstlineno:
            raise AuthoringError(f"two probes are named {name!r} in {function.__module__}: rename one")
        ours[name] = Probe("", exercise, name, function, points, hint, hidden, tolerance, seconds)
        return function

    return register


@dataclass(frozen=True)
class Raised:
    """What a call raised, for whoever judges: full names of the exception's classes, nearest first; () if it returned.

    expected: full names of what it should raise.
    """

    expected: tuple[str, ...]
    names: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.names)


def raises(error: type[BaseException] | tuple, function: Callable, *args, **kwargs) -> Raised:
    """What function(*args, **kwargs) raises where it is `error`; true then, false when it returns. Any other exception
    goes through. A probe returns it as a part of its result: whether it is the right error is judged with the values.

    A stub does not count: NotImplementedError goes through even where RuntimeError, its base, is expected.
    """
    expected = tuple(map(_full_name, error if isinstance(error, tuple) else (error,)))
    try:
        function(*args, **kwargs)
    except NotImplementedError:
        raise
    except error as found:
        return Raised(expected, tuple(map(_full_name, type.__getattribute__(type(found), "__mro__"))))
    return Raised(expected, ())


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


class Answer:
    """The learner's named objects, as attributes; one that is missing raises NotWritten.

    Answer({"merge_pair": f}).merge_pair is f.
    """

    def __init__(self, objects: Mapping[str, object]):
        self._objects = dict(objects)

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._objects[name]
        except KeyError:
            raise NotWritten(name) from None

    def __dir__(self) -> list[str]:
        return sorted(self._objects)

    def replaced(self, name: str, value: object) -> Answer:
        """The same answers with one of them exchanged."""
        return Answer({**self._objects, name: value})

    def globals_of(self) -> set[int]:
        """Identities of the namespaces in which these answers were written: whose frames are the learner's."""
        return {id(g) for value in self._objects.values() for g in _globals(value)}


def _globals(value: object) -> Iterable[dict]:
    """Namespaces of a function, of a class's methods, and of what partial, lru_cache and the like wrap."""
    if isinstance(value, partial):
        yield from _globals(value.func)
    elif isinstance(value, type):
        for member in vars(value).values():
            inner = getattr(member, "__func__", getattr(member, "fget", member))
            if not isinstance(inner, type):
                yield from _globals(inner)
    elif isinstance(value, FunctionType):
        yield value.__globals__
        yield from _globals(value.__dict__.get("__wrapped__"))
    elif hasattr(value, "__wrapped__"):
        yield from _globals(value.__wrapped__)
