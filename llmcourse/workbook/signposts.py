"""The signposts that the builder puts into notebooks: from a lesson to the learner's own copy of its lab, from the lab on.

A lesson ends with a cell that makes the copy and shows one link to it (`your_copy`). A lab begins with a line that says
whether it is that copy, and ends with a link to the next lesson.
"""

from __future__ import annotations

import os
from pathlib import Path

from llmcourse.checks import LESSONS
from llmcourse.errors import CourseError

from .course import course, work_folder
from .source import SourceCell

PLACE_ID = "text-place"  # cell id of a lab's first line, behind the lab's number


def around(kind: str, name: str, cells: list[SourceCell], names: list[str]) -> list[tuple[str, SourceCell]]:
    """A notebook's cells with its signposts, each with the end of its id ("" where the builder chooses one).

    kind: "lesson", "exercise" or "solution"; names: all lessons with a lab, in order.
    """
    content = [("", cell) for cell in cells]
    if kind == "lesson":
        return [*content, *_to_the_lab(name)]
    return [(PLACE_ID, _text(place(kind, name))), *content, *_to_the_next(name, names)]


def place(kind: str, name: str) -> str:
    """The first line of a lab. kind: "exercise", "solution" or "copy"."""
    number = name[:2]
    if kind == "copy":
        return (f"*This is your own copy: write here. `llmcourse check {number}`, `llmcourse progress` and `--mine` read it. "
                f"The lesson: [{number} {_words(name)}](../notebooks/{name}.ipynb).*")
    copy = f"[your own copy](../work/{name}.ipynb)"
    if kind == "solution":
        return f"*This is the solution. What you write belongs into {copy}.*"
    return (f"*This is the untouched lab, not your copy: `llmcourse check` and `progress` do not read it. Work in {copy}; "
            f"if that is not there yet, `llmcourse open {number}` makes it.*")


def your_copy(number: str) -> None:
    """Make the learner's own copy of a lab, if it is not there yet, and show a link that opens it."""
    from .opening import open_lab
    from .report import show

    ours = course()
    try:
        path = open_lab(ours, number, work_folder()).path
    except CourseError as error:
        print(f"Your copy could not be made: {error}")
        return
    show(Link(f"Write it yourself: lab {path.stem[:2]}", path))


class Link:
    """A link to a file, relative to the notebook that shows it; as text, its path."""

    def __init__(self, words: str, path: Path):
        self.words, self.href = words, Path(os.path.relpath(path)).as_posix()

    def __str__(self) -> str:
        return f"{self.words}: {self.href}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/plain": str(self), "text/markdown": f"**[{self.words}]({self.href})**"}


def _to_the_lab(name: str) -> list[tuple[str, SourceCell]]:
    source = f'from llmcourse.workbook import your_copy\n\nyour_copy("{name[:2]}")'
    return [("own-your-copy", SourceCell(0, source, "own"))]


def _to_the_next(name: str, names: list[str]) -> list[tuple[str, SourceCell]]:
    later = [one for one in names if one > name]
    if not later:
        return []
    there = later[0]
    return [("text-next", _text(f"**Next lesson: [{there[:2]} {_words(there)}](../notebooks/{there}.ipynb)**"))]


def _words(name: str) -> str:
    return LESSONS.get(name[:2], name[3:]).replace("_", " ")


def _text(source: str) -> SourceCell:
    return SourceCell(0, source, "text")
