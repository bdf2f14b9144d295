"""Where a failing answer calls the learner's own answers to other exercises: which of those fail, and is it right by itself?"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FunctionType

from llmcourse.checks import Answer, Lesson
from llmcourse.checks.run import NOT_WRITTEN, judge, run_probe


def blame(lesson: Lesson, exercise: str, answer: Answer, reference: Answer, seed: int) -> str:
    """One sentence where the answer calls own answers of the same lab that fail their visible checks, "" otherwise.

    The answer is run once more with the reference in their places, to tell whether it is right by itself.
    """
    mine = getattr(answer, exercise)
    space = _namespace(mine)
    others = [name for name in lesson.exercises if name != exercise and name in _called(mine, space, lesson.exercises)]
    failing = [name for name in others if _fails(lesson, name, Answer({name: space[name]}), reference, seed)]
    if not failing:
        return ""
    with _exchanged(space, {name: getattr(reference, name) for name in failing}):
        alone = all(_passes(probe, answer, reference, seed) for probe in lesson.of(exercise, hidden=False))
    whose = " and ".join(f"your {name}" for name in failing)
    fail = "fails its own checks" if len(failing) == 1 else "fail their own checks"
    if alone:
        return f"{exercise} is right by itself: it calls {whose}, which {fail}. Mend that first."
    return f"{exercise} calls {whose}, which {fail}. Mend that first, then come back."


def _namespace(value: object) -> dict:
    """The globals in which an answer's code looks up its names; of a class, those of its first method."""
    members = [value] if isinstance(value, FunctionType) else vars(value).values() if isinstance(value, type) else ()
    functions = [f for f in members if isinstance(f, FunctionType)]
    return functions[0].__globals__ if functions else {}


def _called(value: object, space: Mapping[str, object], exercises: Mapping[str, object]) -> set[str]:
    """Exercises whose names the answer's code reads, directly or through other functions of its namespace."""
    seen: set[str] = set()
    queue = [value]
    while queue:
        for name in _names(queue.pop()) - seen:
            found = space.get(name)
            if isinstance(found, (FunctionType, type)) and getattr(found, "__module__", "") == space.get("__name__"):
                seen.add(name)
                queue.append(found)
    return {name for name in seen if name in exercises and not hasattr(builtins, name)}


def _names(value: object) -> set[str]:
    codes = [value.__code__] if isinstance(value, FunctionType) else [
        inner.__code__ for f in vars(value).values()
        if isinstance(inner := getattr(f, "__func__", getattr(f, "fget", f)), FunctionType)]
    names: set[str] = set()
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
    return names


def _fails(lesson: Lesson, name: str, answer: Answer, reference: Answer, seed: int) -> bool:
    """Whether something was written there that fails; what is not written has its own message."""
    for probe in lesson.of(name, hidden=False):
        got = run_probe(probe, answer, seed)
        if got["kind"] == NOT_WRITTEN:
            return False
        if not judge(probe, got, run_probe(probe, reference, seed)).ok:
            return True
    return False


def _passes(probe, answer: Answer, reference: Answer, seed: int) -> bool:
    return judge(probe, run_probe(probe, answer, seed), run_probe(probe, reference, seed)).ok


@contextmanager
def _exchanged(space: dict, others: dict[str, object]) -> Iterator[None]:
    """The namespace with other objects in it while the body runs."""
    before = {name: space[name] for name in others}
    space.update(others)
    try:
        yield
    finally:
        space.update(before)
