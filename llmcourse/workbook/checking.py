"""`check` and `hint`, as a learner calls them in a notebook; neither ever raises."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from llmcourse import given
from llmcourse.checks import Answer, Lesson, Wrong, load_wrong
from llmcourse.errors import CourseError

from .course import Course, course, split_exercise
from .examine import Examined, examine
from .report import Report, report, show


def examine_answer(ours: Course, lesson: Lesson, exercise: str, answer: Answer) -> Examined:
    """One exercise's visible probes on an answer, with the course's reference and its known wrong answers."""
    reference = given.answers(lesson.number)
    return examine(lesson, exercise, answer, given.answer(lesson.number), forbids=given.forbidden(lesson, exercise),
                   wrongs=known_mistakes(ours, lesson.number), namespace=reference.objects,
                   source=reference.sources[exercise])


def known_mistakes(ours: Course, number: str) -> list[Wrong]:
    """The lab's named wrong answers."""
    return load_wrong(ours.wrong(number))


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
    hints = lesson.exercises[name].hints
    if level not in range(1, len(hints) + 1):
        raise CourseError(f"hints have levels 1 to {len(hints)}, not {level!r}")
    more = f"There is more in hint({exercise!r}, {level + 1})." if level < len(hints) else ""
    return Report(f"{exercise}, hint {level} of {len(hints)}", (("→", hints[level - 1], ()),), more)
