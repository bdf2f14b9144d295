"""Cells of a learner's notebook that did not run: said with the number that Jupyter shows, and by the exercise they answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from .answers import Problem
from .examine import Examined
from .notebook import Cell, defined_names, parse, read_notebook


@dataclass(frozen=True)
class Failures:
    """by_exercise: why the cell of an exercise does not run; lines: every failed cell, in words."""

    by_exercise: dict[str, str]
    lines: tuple[str, ...]

    @classmethod
    def of(cls, path: Path, problems: Iterable[Problem], exercises: Iterable[str]) -> Failures:
        """What failed in the notebook at `path`."""
        cells = {cell.index: cell for cell in read_notebook(path).cells}
        names, by_exercise, lines = set(exercises), {}, []
        for problem in problems:
            cell = cells.get(problem.cell)
            sentence = _sentence(problem, cell)
            lines.append(sentence)
            by_exercise.update({name: sentence for name in _answered(cell) if name in names})
        return cls(by_exercise, tuple(lines))

    def marked(self, examined: Examined) -> Examined:
        """The result of an exercise, with the reason why its cell does not run, where that is why it is missing."""
        why = self.by_exercise.get(examined.exercise, "")
        return replace(examined, broken=why) if why and examined.unwritten else examined


def _sentence(problem: Problem, cell: Cell | None) -> str:
    if cell is None:
        return f"the lab's own imports: {problem.error}: {problem.message}"
    place = f"cell {problem.cell}" if cell.run is None else f"cell [{cell.run}]"
    line = f", line {problem.line}" if problem.line else ""
    return f"{place}{line}: {problem.error}: {problem.message}"


def _answered(cell: Cell | None) -> list[str]:
    """The exercises that a cell answers; one whose syntax is wrong is known by the builder's mark."""
    if cell is None:
        return []
    try:
        return defined_names(parse(cell.source))
    except SyntaxError:
        return [cell.exercise] if cell.role == "answer" else []
