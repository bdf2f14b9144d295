"""Which files are graded, and under which names: `find(paths)`. Nothing is opened here but folders."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from llmcourse.errors import CourseError
from llmcourse.workbook.notebook import MAX_FILE_BYTES

from .results import printable

MAX_NAME = 100
_NOT_FOUND = "there is no notebook in this folder"
_KEEP = "()+,=@~ .-_"
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Submission:
    """One file to grade. name: what the tables call it; file_name: the same as a name for files of ours, unique.

    error: why there is no file to read, "" if there is one.
    """

    name: str
    path: Path
    file_name: str = ""
    error: str = ""


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
        if not path.exists():
            raise CourseError(f"there is no {path}")
        found += _in_folder(path, skipped) if path.is_dir() else [Submission(printable(_stem(path.name)), path)]
    if not found:
        raise CourseError(f"there is nothing to grade in {', '.join(map(str, paths))}")
    unique = {os.path.abspath(one.path): one for one in found}
    return _named_apart(sorted(unique.values(), key=lambda one: (one.name, str(one.path))))


def _in_folder(folder: Path, skipped: set[str]) -> list[Submission]:
    entries = sorted((e for e in os.scandir(folder) if not _is_left_out(e, skipped)), key=lambda e: e.name)
    found = [
        Submission(printable(_stem(e.name)), Path(e.path))
        for e in entries
        if e.name.lower().endswith(".ipynb") and not e.is_dir(follow_symlinks=False)
    ]
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            notebooks = sorted(_notebooks_below(Path(entry.path), skipped))
            student = printable(entry.name)
            if not notebooks:
                found.append(Submission(student, Path(entry.path), error=_NOT_FOUND))
            elif len(notebooks) == 1:
                found.append(Submission(student, notebooks[0]))
            else:
                found += [
                    Submission(f"{student}/{printable(_stem(n.relative_to(entry.path).as_posix()))}", n)
                    for n in notebooks
                ]
    return found


def _notebooks_below(folder: Path, skipped: set[str]) -> Iterable[Path]:
    for entry in os.scandir(folder):
        if _is_left_out(entry, skipped):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _notebooks_below(Path(entry.path), skipped)
        elif entry.name.lower().endswith(".ipynb"):
            yield Path(entry.path)


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
        apart.append(Submission(name, one.path, file_name, one.error))
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
