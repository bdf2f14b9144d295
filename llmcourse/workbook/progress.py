"""`llmcourse progress`: the whole course at a glance, computed from the learner's notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from llmcourse.checks import LESSONS
from llmcourse.errors import UnreadableNotebook

from .checking import Checked, check_lab
from .course import Course
from .notebook import read_notebook
from .predicting import predictions


@dataclass(frozen=True)
class LabProgress:
    """One lab: its result (None where the notebook cannot be read: `problem` says why) and its effort cards."""

    name: str
    checked: Checked | None
    cards: tuple[dict, ...]
    problem: str = ""


def progress(ours: Course, work: Path) -> Iterable[LabProgress]:
    """Each lab of the course in turn, as its probes run."""
    for name in ours.labs():
        cards = tuple(read_notebook(ours.exercise(name)).metadata["exercises"])
        try:
            yield LabProgress(name, check_lab(ours, name, work), cards)
        except UnreadableNotebook as error:
            yield LabProgress(name, None, cards, str(error))


def lines(labs: list[LabProgress], work: Path) -> list[str]:
    """The table, what comes next, and the predictions, as lines of text."""
    said = [line for lab in labs for line in _lab_lines(lab)]
    names = {lab.name[:2] for lab in labs}
    said += [f"{number} {name:24} no lab yet" for number, name in LESSONS.items() if number not in names]
    said += ["", _next(labs)]
    mine = predictions(work)
    if mine:
        said += ["", "Predictions:", *(f"  {one}" for one in mine.values())]
    return said


def _lab_lines(lab: LabProgress) -> list[str]:
    head = f"{lab.name[:2]} {lab.name[3:]:24}"
    if lab.checked is None:
        return [f"{head} {lab.problem}"]
    done = lab.checked.exercises
    points, most = sum(e.points for e in done), sum(e.max_points for e in done)
    note = "" if lab.checked.path else f"   open it with: llmcourse open {lab.name[:2]}"
    rows = [f"{head} {sum(e.complete for e in done)} of {len(done)} exercises   {points:g} of {most:g} points{note}"]
    for one, card in zip(done, lab.cards):
        mark = "✓" if one.complete else "·" if one.unwritten else "✗"
        rows.append(f"   {mark} {one.exercise:24} {one.points:g} of {one.max_points:g}   unlocks: {card['unlocks']}")
    return rows


def _next(labs: list[LabProgress]) -> str:
    for lab in labs:
        for one, card in zip(lab.checked.exercises if lab.checked else (), lab.cards):
            if not one.complete:
                return (f"Next: {lab.name[:2]}.{one.exercise} ({card['title']}), difficulty {card['difficulty']} of 5, "
                        f"{card['minutes']} minutes")
    return "Every exercise is complete." if labs else "There is no lab yet."
