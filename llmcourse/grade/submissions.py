"""Which files are graded, and under which names: `find(paths)`. Nothing is opened here but folders."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from llmcourse.errors import CourseError
from llmcourse.workbook.notebook import MAX_FILE_BYTES

from .printable import printable

MAX_NAME = 100
MAX_DEPTH, MAX_NOTEBOOKS, MAX_SHOWN = 50, 50, 40
_NOT_FOUND = "there is no notebook in this folder"
_KEEP = "()+,=@~ .-_"
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Submission:
    """One file to grade. name: what the tables call it; file_name: the same as a name for files of ours, unique.

    error: why there is no file to read, "" if there is one. owner: the folder that it was handed in in, or the file's name.
    """

    name: str
    path: Path
    file_name: str = ""
    error: str = ""
    owner: str = ""


def find(paths: Iterable[Path], skip: Iterable[Path] = ()) -> list[Submission]:
    """The submissions in these paths, in order of their names.

    A file is one submission. A folder's own notebooks are one each, named as the file is; each folder in it is a
    student's, named as the folder is (and the notebook, where there are several), notebooks at any depth.
    skip: folders that are not looked into. Hidden files and folders are left out; links are never followed.
    Raises CourseError when a path does not exist, or there is nothing to grade.
    """
    paths, skipped = list(paths), {os.path.realpath(path) for path in skip}
    found: list[Submission] = []
    for path in paths:
        if not os.path.exists(path):
            raise CourseError(f"there is no {path}")
        if os.path.isdir(path):
            found += _in_folder(path, skipped)
        else:
            found.append(_named(printable(_stem(path.name)), path))
    if not found:
        raise CourseError(f"there is nothing to grade in {', '.join(map(str, paths))}")
    unique = {os.path.abspath(one.path): one for one in found}
    return _named_apart(sorted(unique.values(), key=lambda one: (one.name, str(one.path))))


def _in_folder(folder: Path, skipped: set[str]) -> list[Submission]:
    try:
        entries = sorted((e for e in os.scandir(folder) if not _is_left_out(e, skipped)), key=lambda e: e.name)
    except OSError as error:
        raise CourseError(f"the folder {folder} cannot be read: {error.strerror}") from error
    found = [
        _named(printable(_stem(e.name)), Path(e.path))
        for e in entries
        if e.name.lower().endswith(".ipynb") and not e.is_dir(follow_symlinks=False)
    ]
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            found += _of_student(Path(entry.path), skipped)
    return found


def _named(name: str, path: Path, error: str = "", owner: str = "") -> Submission:
    return Submission(name, path, error=error, owner=owner or name)


def _of_student(folder: Path, skipped: set[str]) -> list[Submission]:
    """The notebooks of one folder, one row each; and a row for each place that could not be looked into."""
    student = printable(folder.name)
    notebooks, errors = _notebooks_below(folder, skipped)
    if not notebooks and not errors:
        return [_named(student, folder, _NOT_FOUND)]
    if len(notebooks) + len(errors) == 1:
        return [_named(student, *(notebooks or [folder]), "".join(errors.values()))]
    found = [(notebook, "") for notebook in notebooks] + list(errors.items())
    return [
        _named(f"{student}/{printable(_stem(path.relative_to(folder).as_posix()))}", path, error, student)
        for path, error in found
    ]


def _notebooks_below(folder: Path, skipped: set[str]) -> tuple[list[Path], dict[Path, str]]:
    """The notebooks in a folder and in those in it, sorted; and why some could not be looked into, by path."""
    notebooks, errors, todo = [], {}, [(folder, 0)]
    while todo:
        here, depth = todo.pop()
        try:
            if depth > MAX_DEPTH:
                raise OSError(0, f"its folders lie more than {MAX_DEPTH} deep in each other")
            entries = [entry for entry in os.scandir(here) if not _is_left_out(entry, skipped)]
            todo += [(Path(e.path), depth + 1) for e in entries if e.is_dir(follow_symlinks=False)]
        except OSError as error:
            place = here.relative_to(folder).as_posix()
            shown = place if depth <= MAX_DEPTH else f"{place[:MAX_SHOWN]}…"
            errors[here if depth <= MAX_DEPTH else folder / place[:MAX_SHOWN]] = printable(
                f"the folder {shown} cannot be read: {error.strerror}"
            )
            continue
        notebooks += [
            Path(e.path) for e in entries if e.name.lower().endswith(".ipynb") and not e.is_dir(follow_symlinks=False)
        ]
    if len(notebooks) > MAX_NOTEBOOKS:
        errors[folder / "…"] = f"it holds {len(notebooks):,} notebooks; only the first {MAX_NOTEBOOKS} are graded"
    return sorted(notebooks)[:MAX_NOTEBOOKS], errors


def _is_left_out(entry: os.DirEntry, skipped: set[str]) -> bool:
    return entry.name.startswith((".", "__")) or os.path.realpath(entry.path) in skipped


def _stem(name: str) -> str:
    return name[: -len(".ipynb")] if name.lower().endswith(".ipynb") else name


def _named_apart(found: list[Submission]) -> list[Submission]:
    """Every submission with a name and a file name of its own, also where case or accents' forms do not count."""
    used: set[str] = set()
    names: set[str] = set()
    apart = []
    for one in found:
        name = _unused(one.name, names, lambda text: text)
        file_name = _unused(as_file_name(one.name), used, lambda text: unicodedata.normalize("NFKC", text).casefold())
        apart.append(replace(one, name=name, file_name=file_name))
    return apart


def _unused(wanted: str, used: set[str], key) -> str:
    number, candidate = 1, wanted
    while key(candidate) in used:
        number += 1
        candidate = f"{wanted}~{number}"
    used.add(key(candidate))
    return candidate


def as_file_name(name: str) -> str:
    """A name that every file system takes, near to the given one."""
    text = "".join(c if c.isalnum() or c in _KEEP else "_" for c in unicodedata.normalize("NFC", name))
    text = text.lstrip(". ")[:MAX_NAME].rstrip(". ") or "_"
    while len(text.encode("utf-8", "surrogatepass")) > 2 * MAX_NAME:
        text = text[:-1]
    return f"_{text}" if _RESERVED.match(text) else text


def read_content(path: Path) -> bytes:
    """The bytes of a regular file; a link, a pipe, a device or a file too large is refused, none is waited for.

    Raises OSError with the reason.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if path.is_symlink():
        raise OSError("it is a link, and links are not followed")
    with open(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is not an ordinary file")
        if found.st_size > MAX_FILE_BYTES:
            raise OSError(f"it is larger than {MAX_FILE_BYTES:,} bytes")
        return file.read(MAX_FILE_BYTES + 1)
