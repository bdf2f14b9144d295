"""`from_earlier_labs`: what the learner wrote before, for the lab at hand; the reference where it is missing."""

from __future__ import annotations

from pathlib import Path

from llmcourse import given
from llmcourse.errors import CourseError, UnreadableNotebook

from .checking import Checked, check_lab
from .course import course, split_exercise
from .report import Report, show


def from_earlier_labs(*exercises: str, folder: str | Path = "."):
    """The learner's own answers to exercises of earlier labs where all visible checks pass, else the reference's.

        apply_rope, grouped_attention = from_earlier_labs("02.apply_rope", "03.grouped_attention")

    exercises: "NN.name" each; folder: where the labs are (a notebook's own folder by default).
    Returns one object for each exercise (for a single one the object itself), and shows whose each is.
    Raises UnknownLesson for an exercise that no lab has.
    """
    ours, labs, found, lines = course(), {}, [], []
    for one in exercises:
        number, name = split_exercise(one)
        ours.lesson(number).of(name)  # raises for an exercise that no lab has
        if number not in labs:
            labs[number] = _checked(ours, number, Path(folder))
        answer, reason = _learners(labs[number], name)
        found.append(getattr(given.answer(number), name) if answer is None else answer)
        whose = "yours" if answer is not None else f"the reference's{reason}"
        lines.append(("✓" if answer is not None else "·", f"{one}: {whose}", ()))
    show(Report("From earlier labs", tuple(lines)))
    return found[0] if len(found) == 1 else tuple(found)


def _checked(ours, number: str, folder: Path) -> Checked | str:
    """The lab with its results, or why it cannot be read."""
    try:
        return check_lab(ours, number, folder)
    except (UnreadableNotebook, CourseError) as error:
        return str(error)


def _learners(lab: Checked | str, name: str) -> tuple[object | None, str]:
    """The learner's object, or None and why not."""
    if isinstance(lab, str):
        return None, f" ({lab})"
    examined = next(one for one in lab.exercises if one.exercise == name)
    if examined.complete:
        return lab.answers.objects[name], ""
    return None, "" if examined.unwritten else f" (yours gets {examined.points:g} of {examined.max_points:g} points)"
