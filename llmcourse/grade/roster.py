"""The class list: who is expected, whose submission is whose, and who is missing."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from llmcourse.errors import CourseError

MAX_NAMED = 5
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


def match(owners: Iterable[str], roster: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Whose each submission is: the student by owner, and why it is nobody's for those that could be several students'.

    owners: what the submissions' folders (or files that lie in no folder) are called. It is a student's by the same
    name, else by an id that stands in it as a whole word. Case and the form of accents do not count; of two ids of which
    one is part of the other, the longer is meant. Where a student has a folder by the same name, another one that only
    has the id in it is nobody's.
    """
    roster = {_plain(one): one for one in roster}
    owners = list(dict.fromkeys(owners))
    found = {owner: roster[_plain(owner)] for owner in owners if _plain(owner) in roster}
    doubts, taken = {}, set(found.values())
    for owner in owners:
        if owner in found:
            continue
        fitting = [one for one in roster if _stands_in(one, _plain(owner))]
        meant = [one for one in fitting if not any(one != other and _stands_in(one, other) for other in fitting)]
        students = [roster[one] for one in meant]
        if len(students) > 1:
            doubts[owner] = f"whose is it? Its name fits {', '.join(students[:MAX_NAMED])}"
        elif students and students[0] in taken:
            doubts[owner] = f"whose is it? Its name fits {students[0]}, who has another submission of just that name"
        elif students:
            found[owner] = students[0]
    return found, doubts


def _stands_in(word: str, text: str) -> bool:
    return re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", text) is not None


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
