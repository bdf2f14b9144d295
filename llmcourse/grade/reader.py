"""A submission's file as data: `Reader.read(...)`. Parsing happens in a process of its own; nothing is run.

A file can be made so that Python's own parser takes gigabytes, hours, or dies: then that file is unreadable, and the
next one is read by a new process.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from llmcourse.errors import UnreadableNotebook
from llmcourse.workbook.choosing import choose, sources
from llmcourse.workbook.course import Course
from llmcourse.workbook.notebook import Notebook, parse_notebook, read_notebook

from .child_process import Child, Silent
from .flags import flags

READ_SECONDS = 10.0
READ_MEMORY = 4 << 30
MAX_SOURCE = 2_000_000
MAX_ANSWER = 32 << 20
_TOO_MUCH = "it holds too much code: a cell that answers many exercises counts once for each"


@dataclass(frozen=True)
class ReadNotebook:
    """What a notebook holds. error: why it is unreadable, "" if it is not; lesson: its number, "" if nothing says it.

    marked: whether the builder's mark says the lesson (and not only the file's name); pieces: what is to run;
    import_cells: positions of the cells that only import; n_cells: code cells; seconds: that reading it took.
    """

    error: str = ""
    lesson: str = ""
    marked: bool = False
    pieces: list[dict] = field(default_factory=list)
    import_cells: list[int] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    n_cells: int = 0
    flags: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Reader:
    """Reads submissions one after the other. lesson: where a notebook's mark does not say it ("": its name does)."""

    def __init__(self, root: Path, lesson: str = "", time_factor: float = 1.0):
        self.root, self.lesson, self.seconds = root, lesson, READ_SECONDS * time_factor
        self._child: Child | None = None

    def read(self, name: str, content: bytes) -> ReadNotebook:
        """The notebook in `content`, which is the file `name`'s."""
        started = time.monotonic()
        read = self._read(name, content)
        return replace(read, seconds=time.monotonic() - started)

    def _read(self, name: str, content: bytes) -> ReadNotebook:
        self._child = self._child or Child("llmcourse.grade.reader", {"root": str(self.root), "lesson": self.lesson})
        try:
            self._child.send({"name": name, "content": base64.b64encode(content).decode()})
            answer = self._child.line(self.seconds)
        except Silent:
            answer = None
        except OSError:
            answer = b""
        if not answer:
            self.close()
            why = (
                f"reading it took more than {self.seconds:g} seconds"
                if answer is None
                else "Python died while reading it"
            )
            return ReadNotebook(error=f"{name} cannot be read: {why}")
        try:
            return ReadNotebook(**json.loads(answer))
        except (ValueError, TypeError, RecursionError, MemoryError) as error:
            self.close()  # the rest of this line would be taken for the next notebook's
            return ReadNotebook(error=f"{name} cannot be read: {type(error).__name__}")

    def close(self) -> None:
        """End the process."""
        if self._child:
            self._child.close()
            self._child = None


def main() -> None:
    """The process: one line with the configuration, then one line for each notebook."""
    config = json.loads(sys.stdin.readline())
    if sys.platform.startswith("linux"):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (READ_MEMORY, READ_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    course = Course(Path(config["root"]))
    for line in sys.stdin:
        request = json.loads(line)
        path, content = Path(request["name"]), base64.b64decode(request["content"])
        try:
            found = _read(course, parse_notebook(content, path), config["lesson"])
        except UnreadableNotebook as error:
            found = ReadNotebook(error=str(error))
        except (MemoryError, RecursionError, ValueError, TypeError, AttributeError) as error:
            found = ReadNotebook(error=f"{path.name} cannot be read: {type(error).__name__}: {error}")
        answer = json.dumps(vars(found))
        if len(answer) > MAX_ANSWER:
            answer = json.dumps(vars(ReadNotebook(error=f"{path.name} cannot be read: {_TOO_MUCH}")))
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


def _read(course: Course, notebook: Notebook, asked: str) -> ReadNotebook:
    marked = notebook.marked
    lesson = marked or asked or course.lesson_of(notebook)
    n_cells = sum(bool(cell.source.strip()) for cell in notebook.cells)
    if (asked and lesson != asked) or not any(lab.startswith(f"{lesson}_") for lab in course.labs()):
        return ReadNotebook(lesson=lesson, marked=bool(marked), n_cells=n_cells)
    if sum(len(cell.source) for cell in notebook.cells) > MAX_SOURCE:
        raise UnreadableNotebook(f"{notebook.path.name} holds more than {MAX_SOURCE:,} characters of code")
    lab = read_notebook(course.exercise(lesson))
    exercises = [one["name"] for one in lab.metadata["exercises"]]
    pieces, warnings = choose(notebook, lab, exercises)
    imports = [cell.index for cell in notebook.cells if cell.role == "imports"]
    return ReadNotebook(
        "",
        lesson,
        bool(marked),
        [vars(piece) for piece in pieces],
        imports,
        warnings,
        sources(notebook, exercises, lab),
        n_cells,
        flags=flags(pieces),
    )
