"""grades.csv: one row for every submission, and for every student of the roster without one."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path

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
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


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
    part = file.with_name(file.name + ".part")
    with open(part, "w", encoding="utf-8", newline="", errors="backslashreplace") as out:
        table = csv.writer(out)
        table.writerow([*_FIRST, *questions])
        for result in results:
            scores = {f"{result['lesson']}.{e['name']}": e["score"] for e in result["exercises"]}
            row = [*_fixed(result), *(_number(scores.get(question)) for question in questions)]
            table.writerow([_harmless(cell) for cell in row])
    os.replace(part, file)


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
    """A cell that a spreadsheet program does not take for a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
