"""`check` and `hint`, as a learner calls them in a notebook (neither ever raises); `check_lab` for a whole one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

from llmcourse import given
from llmcourse.checks import Answer, Lesson, load_wrong
from llmcourse.errors import CourseError, UnreadableNotebook

from .answers import Answers, load_answers
from .course import Course, course, split_exercise
from .examine import VISIBLE_SEED, Examined, examine
from .failures import Failures
from .notebook import read_notebook
from .report import Report, report, show


def examine_answer(ours: Course, lesson: Lesson, exercise: str, answer: Answer, *, seed: int = VISIBLE_SEED,
                   hidden: bool = False) -> Examined:
    """One exercise's visible probes (with hidden=True all) on an answer, with the reference and the known wrong answers."""
    loaded = given.answers(lesson.number)
    return examine(lesson, exercise, answer, given.answer(lesson.number), forbids=given.forbidden(lesson, exercise),
                   wrongs=load_wrong(ours.wrong(lesson.number)), namespace=loaded.objects,
                   source=loaded.sources[exercise], seed=seed, hidden=hidden)


def _never_raises(function: Callable[..., Report]) -> Callable[..., None]:
    @wraps(function)
    def shown(exercise: str, *args, **kwargs) -> None:
        try:
            result = function(exercise, *args, **kwargs)
        except CourseError as error:
            result = Report(f"{exercise}: {error}", ())
        except Exception as error:
            result = Report(f"{exercise}: the course's own check failed ({type(error).__name__}: {error}). "
                            "Your answer is not to blame; please report this.", ())
        show(result)

    return shown


@_never_raises
def check(exercise: str, **answers: object) -> Report:
    """Check an answer: `check("01.merge_pair", merge_pair=merge_pair)`. Shows one line for each visible probe.

    exercise: lesson and name. answers: the function or class under its own name. Shows a report and returns nothing.
    """
    number, name = split_exercise(exercise)
    ours = course()
    lesson = ours.lesson(number)
    lesson.of(name)
    if name not in answers:
        raise CourseError(f"pass the answer along: check({exercise!r}, {name}={name})")
    return report(examine_answer(ours, lesson, name, Answer(answers)))


@_never_raises
def hint(exercise: str, level: int = 1) -> Report:
    """Show a hint: `hint("01.merge_pair", 1)` nudges, level 2 gives the formula, level 3 the steps."""
    number, name = split_exercise(exercise)
    lesson = course().lesson(number)
    lesson.of(name)
    return hint_report(lesson, name, level, "hint({exercise!r}, {level})")


def hint_report(lesson: Lesson, name: str, level: int, call: str) -> Report:
    """One hint. call: how the next one is asked for, with {exercise} and {level} in it."""
    exercise, hints = f"{lesson.number}.{name}", lesson.exercises[name].hints
    if level not in range(1, len(hints) + 1):
        raise CourseError(f"hints have levels 1 to {len(hints)}, not {level!r}")
    more = f"There is more: {call.format(exercise=exercise, level=level + 1)}" if level < len(hints) else ""
    return Report(f"{exercise}, hint {level} of {len(hints)}", (("→", hints[level - 1], ()),), more)


@dataclass(frozen=True)
class Checked:
    """One lab of a folder: its file (None where there is none), what its cells did, and each exercise's result.

    failures: cells that failed, in words, counted as Jupyter shows them.
    """

    number: str
    name: str
    path: Path | None
    answers: Answers
    exercises: tuple[Examined, ...]
    failures: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Every visible probe of every exercise passed."""
        return all(one.complete for one in self.exercises)


def check_lab(ours: Course, number: str, folder: Path, *, only: str = "", seed: int = VISIBLE_SEED,
              hidden: bool = False) -> Checked:
    """Run the visible probes of a lab on the answers found in a folder (or in one notebook file), in this process.

    only: one exercise; "" all. hidden: the hidden probes too, with a `seed` of one's own.
    A lab that is not in the folder counts as not written. Raises UnknownLesson, UnreadableNotebook.
    """
    name = ours.name(number)
    lesson = ours.lesson(name)
    path = find_lab(folder, name)
    answers = load_answers(path, ours.exercise(name), lesson.exercises) if path else Answers()
    answer = Answer({one: answers.objects[one] for one in lesson.exercises if one in answers.objects})
    failed = Failures.of(path, answers.problems, lesson.exercises) if path else Failures({}, ())
    wanted = [one for one in lesson.exercises if one == (only or one)]
    with answers.as_main():
        results = tuple(failed.marked(examine_answer(ours, lesson, one, answer, seed=seed, hidden=hidden)) for one in wanted)
    return Checked(lesson.number, name, path, answers, results, failed.lines)


def find_lab(folder: Path, name: str) -> Path | None:
    """The notebook of a lab in a folder: by its name, else the first that says it is of this lesson; else None."""
    if folder.is_file():
        return folder
    if (folder / f"{name}.ipynb").is_file():
        return folder / f"{name}.ipynb"
    ours = course()
    for file in sorted(folder.glob("*.ipynb")):
        try:
            if ours.lesson_of(read_notebook(file)) == name[:2]:
                return file
        except UnreadableNotebook:
            continue
    return None
