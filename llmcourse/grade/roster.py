"""The class list: who is expected, whose submission is whose, and who is missing."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from llmcourse.errors import CourseError

_ID_COLUMNS = (
    "submission",
    "id",
    "student_id",
    "student id",
    "student",
    "login",
    "username",
    "user",
    "sis_id",
    "sis login id",
    "email",
    "name",
)


def read_roster(file: Path) -> list[str]:
    """The students' ids, in order: one a line, or the first column of a CSV that is named like one (id, student, …).

    Raises CourseError when the file cannot be read, or holds nobody or somebody twice.
    """
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"the roster {file} cannot be read as UTF-8 text: {error}") from error
    delimiter = max(",;\t", key=text.split("\n", 1)[0].count)
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines(), delimiter=delimiter)]
    rows = [row for row in rows if any(row) and not row[0].startswith("#")]
    header = [cell.casefold() for cell in rows[0]] if rows else []
    column = next((header.index(name) for name in _ID_COLUMNS if name in header), None)
    found = [row[column or 0] for row in rows[column is not None :] if len(row) > (column or 0) and row[column or 0]]
    if not found:
        raise CourseError(
            f"the roster {file} names nobody: it should have one student's id a line, or a column named id"
        )
    twice = sorted({one for one in found if found.count(one) > 1})
    if twice:
        raise CourseError(f"the roster {file} names {', '.join(twice)} more than once")
    return found


def match(names: Iterable[str], roster: Iterable[str]) -> dict[str, str]:
    """The student of each submission that has one: by the same name, else by an id that stands in it as a whole word.

    Case and the form of accents do not count; where several ids stand in a name, the longest is meant.
    """
    roster = list(roster)
    found = {}
    for name in names:
        plain = _plain(name)
        fitting = [one for one in roster if re.search(rf"(?<![^\W_]){re.escape(_plain(one))}(?![^\W_])", plain)]
        exact = [one for one in fitting if _plain(one) == plain]
        if fitting:
            found[name] = (exact or sorted(fitting, key=len, reverse=True))[0]
    return found


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
