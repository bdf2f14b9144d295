"""grades.csv: one row for every submission, and for every student of the roster without one."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from .printable import printable
from .record import write_private

_FIRST = (
    "submission",
    "student",
    "lesson",
    "status",
    "score",
    "max",
    "previous_score",
    "isolation",
    "seconds",
    "reason",
)
_FORMULA = tuple("=+-@|%＝＋－＠")  # the wide ones are formulas to some spreadsheet programs, too


def write_grades(file: Path, results: Iterable[dict]) -> None:
    """Write the table; a reader never sees half of it.

    After the fixed columns one for each exercise, named lesson.exercise, empty where the submission is of another
    lesson or could not be graded.
    """
    results = list(results)
    questions = list(
        dict.fromkeys(
            f"{r['lesson']}.{e['name']}" for r in sorted(results, key=lambda r: r["lesson"]) for e in r["exercises"]
        )
    )
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow([*_FIRST, *questions])
    for result in results:
        scores = {f"{result['lesson']}.{e['name']}": e["score"] for e in result["exercises"]}
        row = [*_fixed(result), *(_number(scores.get(question)) for question in questions)]
        table.writerow([_harmless(cell) for cell in row])
    write_private(file, text.getvalue())


def _fixed(result: dict) -> list[str]:
    previous = result.get("previous") or {}
    return [
        result["submission"],
        result["student"] or "",
        result["lesson"],
        result["status"],
        _number(result["score"]),
        _number(result["max"]),
        _number(previous.get("score")),
        result["isolation"],
        f"{result['seconds']:.2f}",
        result["reason"],
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _harmless(cell: str) -> str:
    """A cell that a spreadsheet program does not take for a formula, and that looks like what it is."""
    cell = printable(cell)
    return f"'{cell}" if cell.lstrip().startswith(_FORMULA) else cell
