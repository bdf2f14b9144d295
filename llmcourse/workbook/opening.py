"""The learner's own copies of the labs: made, and brought up to date without losing an answer; and `reset`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

from llmcourse.errors import CourseError, UnknownLesson, UnreadableNotebook

from .author import write_notebook
from .course import Course, split_exercise
from .signposts import PLACE_ID, place
from .notebook import defined_names, parse, read_notebook, source_digest

OLD = "old"


@dataclass(frozen=True)
class Opened:
    """What `open_lab` did: "copied", "kept" (nothing to do), "updated" (answers carried over), "replaced" (unreadable).

    carried: exercises whose answers were carried over. backup: where the copy from before is, None if there was none.
    """

    path: Path
    what: str
    carried: tuple[str, ...] = ()
    backup: Path | None = None


def _says_why(function):
    """A folder that cannot be written is the learner's to mend: one line, and no traceback."""

    @wraps(function)
    def told(ours: Course, what: str, work: Path):
        try:
            return function(ours, what, work)
        except OSError as error:
            raise CourseError(f"{error.filename or work} cannot be written ({error.strerror or error}); make room there, or set "
                              "LLMCOURSE_WORK to a folder where you may write") from error

    return told


@_says_why
def open_lab(ours: Course, number: str, work: Path) -> Opened:
    """Make sure that the learner's copy of a lab exists and is of the course's present version; never lose an answer.

    A copy of an older version is kept in work/old/ and its answers and added cells are put into the new lab.
    Raises UnknownLesson.
    """
    source = ours.exercise(number)
    lab, path = _lab(source), work / source.name
    if not path.exists():
        write_notebook(path, lab)
        return Opened(path, "copied")
    try:
        mine = _read(path)
    except UnreadableNotebook:
        backup = _backup(path)
        write_notebook(path, lab)
        return Opened(path, "replaced", (), backup)
    if _mark(mine).get("cells") == _mark(lab)["cells"]:
        return Opened(path, "kept")
    backup = _backup(path)
    merged, carried = carry_over(mine, lab)
    write_notebook(path, merged)
    return Opened(path, "updated", carried, backup)


@_says_why
def reset(ours: Course, exercise: str, work: Path) -> tuple[Path, Path]:
    """Make one exercise of the learner's copy untouched again; returns the notebook, and the file with the old answer.

    Raises UnknownLesson for an exercise that does not exist, CourseError when the lab was never opened.
    """
    number, name = split_exercise(exercise)
    source = ours.exercise(number)
    lab, path = _lab(source), work / source.name
    if name not in _exercises(lab):
        raise UnknownLesson(f"lab {number} has no exercise {name!r}; it has: {', '.join(_exercises(lab))}")
    if not path.exists():
        raise CourseError(f"{path} does not exist: open the lab first, with llmcourse open {number}")
    mine = _read(path)
    answer = _answers(mine, lab).get(name)
    if answer is None:
        raise CourseError(f"{exercise} is untouched in {path}: there is nothing to reset")
    kept = _unused(work / OLD / f"{exercise}.py")
    kept.write_text(answer + "\n", "utf-8")
    merged, _ = carry_over(mine, lab, without=name)
    write_notebook(path, merged)
    return path, kept


def carry_over(mine: dict, lab: dict, without: str = "") -> tuple[dict, tuple[str, ...]]:
    """The lab with a learner's answers and added cells in it, and the names of the exercises that were carried over.

    mine, lab: notebooks as JSON. without: an exercise that is left untouched.
    A cell of the learner's comes after the course's cell that stood before it; a demonstration that they changed is
    kept as a cell of theirs.
    """
    answers = {name: source for name, source in _answers(mine, lab).items() if name != without}
    cells, carried = [], []
    for cell in lab["cells"]:
        name = _mark(cell).get("exercise") if _mark(cell).get("role") == "answer" else None
        if name in answers and source_digest(answers[name]) != _mark(cell)["digest"]:
            cell = {**cell, "source": answers[name]}
            carried.append(name)
        cells.append(cell)
    for anchor, cell in _added(mine, lab):
        places = [i for i, one in enumerate(cells) if one.get("id") == anchor]
        at = places[0] + 1 if places else len(cells)
        while at < len(cells) and cells[at].get("metadata", {}).get("carried"):
            at += 1
        cells.insert(at, {**cell, "metadata": {**cell["metadata"], "carried": True}})
    for cell in cells:
        cell.get("metadata", {}).pop("carried", None)
    return {**lab, "cells": cells}, tuple(carried)


def _answers(mine: dict, lab: dict) -> dict[str, str]:
    """The learner's source of each exercise that they changed, by the names that cells define; the last one counts."""
    wanted = set(_exercises(lab))
    found = {}
    for cell in mine["cells"]:
        if cell["cell_type"] == "code" and not _is_untouched(cell):
            found.update({name: cell["source"] for name in _defines(cell) if name in wanted})
    return found


def _added(mine: dict, lab: dict) -> list[tuple[str, dict]]:
    """The learner's own cells, each with the id of the course's cell before it."""
    exercises = set(_exercises(lab))
    texts = {source_digest(cell["source"]) for cell in lab["cells"]}
    anchor, found = "", []
    for cell in mine["cells"]:
        of_course = bool(_mark(cell)) or re.match(r"\d\d-text-", str(cell.get("id", "")))
        if of_course and any(cell.get("id") == one.get("id") for one in lab["cells"]):
            anchor = cell["id"]
        changed_demo = _mark(cell).get("role") in ("own", "imports") and not _is_untouched(cell)
        answers = cell["cell_type"] == "code" and exercises.intersection(_defines(cell))
        known = source_digest(cell["source"]) in texts
        if (not of_course or changed_demo) and not answers and not known and cell["source"].strip():
            metadata = {k: v for k, v in cell.get("metadata", {}).items() if k != "llmcourse"}
            own = {k: v for k, v in cell.items() if k in ("cell_type", "source", "id", "outputs", "execution_count")}
            found.append((anchor, {**own, "id": f"mine-{len(found) + 1}", "metadata": metadata}))
    return found


def _defines(cell: dict) -> list[str]:
    try:
        return defined_names(parse(cell["source"]))
    except SyntaxError:
        return [_mark(cell)["exercise"]] if _mark(cell).get("role") == "answer" else []


def _is_untouched(cell: dict) -> bool:
    return _mark(cell).get("digest") == source_digest(cell["source"])


def _mark(part: dict) -> dict:
    """The builder's metadata of a notebook or a cell."""
    mark = part.get("metadata", {}).get("llmcourse", {})
    return mark if isinstance(mark, dict) else {}


def _exercises(lab: dict) -> list[str]:
    return [one["name"] for one in _mark(lab)["exercises"]]


def _lab(source: Path) -> dict:
    """The untouched lab as a learner's copy: its first line says so."""
    lab = _read(source)
    for cell in lab["cells"]:
        if str(cell.get("id", "")).endswith(f"-{PLACE_ID}"):
            cell["source"] = place("copy", source.stem)
    return lab


def _read(path: Path) -> dict:
    """A notebook as JSON of format 4, each source one text."""
    read_notebook(path)
    content = json.loads(path.read_text("utf-8-sig"))
    if "cells" not in content:
        raise UnreadableNotebook(f"{path.name} is a notebook of an old format")
    for cell in content["cells"]:
        source = cell.get("source", "")
        cell["source"] = source if isinstance(source, str) else "".join(source)
    return content


def _backup(path: Path) -> Path:
    copy = _unused(path.parent / OLD / path.name)
    copy.write_bytes(path.read_bytes())
    return copy


def _unused(path: Path) -> Path:
    """name-1.ext, name-2.ext, …: the first that does not exist; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while (candidate := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    return candidate
