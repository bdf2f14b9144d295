"""Reference pieces of the labs: `from llmcourse.given import merge_pair` in a later lab.

They are the labs' own solutions, read from the built solution notebooks, so nothing is written twice. An answer may
not call the pieces of its own lesson (`forbidden`).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from llmcourse.checks import Answer, Lesson
from llmcourse.errors import AuthoringError
from llmcourse.workbook.answers import Answers, load_answers
from llmcourse.workbook.course import Course, course
from llmcourse.workbook.notebook import read_notebook


def answers(number: str) -> Answers:
    """The solutions of one lab: objects by name, and the source of each exercise. Loaded once.

    Raises UnknownLesson when the course has no such lab, AuthoringError when a solution does not run.
    """
    ours = course()
    return _load(ours.root, ours.name(number))


def answer(number: str) -> Answer:
    """The solutions of one lab, as a probe wants them."""
    loaded = answers(number)
    return Answer({name: loaded.objects[name] for name in loaded.sources})


def forbidden(lesson: Lesson, exercise: str) -> tuple[str, ...]:
    """What an answer to this exercise may not call: what the exercise says, and this lesson's own given pieces."""
    return (*lesson.exercises[exercise].forbids, _module(lesson.number))


def _module(number: str) -> str:
    return f"{__name__}.lesson_{number}"


@lru_cache(maxsize=None)
def _load(root: Path, name: str) -> Answers:
    ours = Course(root)
    exercises = exercise_names(ours, name)
    loaded = load_answers(ours.solution(name), ours.solution(name), exercises, _module(name[:2]))
    missing = [one for one in exercises if one not in loaded.objects]
    if loaded.problems or missing:
        why = "; ".join(map(str, loaded.problems)) or f"no answer for {', '.join(missing)}"
        raise AuthoringError(f"solutions/{name}.ipynb does not run: {why}")
    return loaded


def exercise_names(ours: Course, name: str) -> list[str]:
    """The exercises of a lab in order, from its built notebook (no probes are imported)."""
    return [one["name"] for one in read_notebook(ours.exercise(name)).metadata.get("exercises", [])]


def __getattr__(name: str):
    """The reference piece of this name, from whichever lab has it."""
    if not name.startswith("_"):
        ours = course()
        for lab in ours.labs():
            if name in exercise_names(ours, lab):
                return _load(ours.root, lab).objects[name]
    raise AttributeError(f"no lab has an exercise {name!r}")
