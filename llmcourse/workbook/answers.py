"""A notebook's answers: choose what to run (trusted, nothing executed) and run it (in a process that may be untrusted).

    pieces, warnings = choose(read_notebook(path), lab, exercises)
    answers = execute(pieces)
"""

from __future__ import annotations

import __future__

import ast
import asyncio
import functools
import inspect
import io
import linecache
import operator
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import CodeType, ModuleType

from llmcourse.checks.codec import type_name
from llmcourse.checks.limits import TimeLimit, time_limit

from .choosing import DEFINITIONS, Snippet, choose, sources
from .importing import import_ahead
from .names import compiled
from .notebook import read_notebook
from .shell import Shell

MAX_MESSAGE = 200
LOAD_SECONDS = 20.0
LEAST_SECONDS = 0.01
_FUTURE = functools.reduce(operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))


@dataclass(frozen=True)
class Problem:
    """A cell that failed. cell: its position from 1 (0: the lab's own import cell); line: in the cell, 0 if unknown."""

    cell: int
    error: str
    message: str
    line: int = 0

    def __str__(self) -> str:
        return f"cell {self.cell}, line {self.line}: {self.error}: {self.message}"

    def as_json(self) -> dict:
        """The fields as a dict."""
        return asdict(self)


@dataclass
class Answers:
    """objects: the namespace after all pieces ran; sources: each exercise's own cell; problems: cells that failed."""

    objects: dict[str, object] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    home: ModuleType | None = None

    @contextmanager
    def as_main(self) -> Iterator[None]:
        """While the body runs, what was defined as of `__main__` is found there, as pickle and type hints look for it."""
        before = sys.modules["__main__"]
        if self.home is not None and self.home.__name__ == "__main__":
            sys.modules["__main__"] = self.home
        try:
            yield
        finally:
            sys.modules["__main__"] = before


def execute(pieces: Iterable[Snippet], module: str = "__main__", file: str = "",
            seconds: float | None = LOAD_SECONDS) -> Answers:
    """Run the pieces in one namespace; a piece that fails becomes a problem and the next one runs.

    module: the namespace's __name__; any but "__main__" is entered in sys.modules.
    file: put before each label in tracebacks.
    seconds: for each piece, and for all that the learner added together, imports not counted; where the latter's time
    is used up, only definitions of the rest run. None for the course's own solutions, which nothing may interrupt.
    What the pieces print is dropped.
    """
    home = ModuleType(module)
    if module != "__main__":
        sys.modules[module] = home
    answers = Answers(vars(home), home=home)
    Shell(answers.objects).install()
    with answers.as_main():
        cells = _Cells(answers, file, seconds)
        for piece in pieces:
            cells.run(piece)
    return answers


class _Cells:
    """Runs cells one after the other, as a kernel does: `from __future__` holds for later ones, `await` may stand alone."""

    def __init__(self, answers: Answers, file: str, seconds: float | None):
        self.answers, self.file, self.seconds, self.own_seconds = answers, file, seconds, seconds
        self.future, self.said = 0, False

    def run(self, piece: Snippet) -> None:
        name = _file_name(f"{self.file} {piece.label}" if self.file else piece.label, piece.source)
        started = time.monotonic()
        try:
            tree = piece.tree()
            if piece.own and self._is_used_up():
                self._only_definitions(tree, piece.cell)
            import_ahead(tree)
            started = time.monotonic()
            limit = self.own_seconds if piece.own and not self._is_used_up() else self.seconds
            code = compiled(tree, name, self.future)
            self.future |= code.co_flags & _FUTURE
            with redirect_stdout(_Nowhere()), nullcontext() if limit is None else time_limit(limit):
                _run(code, self.answers.objects)
        except BaseException as error:
            self.answers.problems.append(_problem(error, piece.cell, name))
        if piece.own and self.own_seconds is not None:
            self.own_seconds -= time.monotonic() - started

    def _is_used_up(self) -> bool:
        return self.own_seconds is not None and self.own_seconds < LEAST_SECONDS

    def _only_definitions(self, tree: ast.Module, cell: int) -> None:
        kept = [node for node in tree.body if isinstance(node, DEFINITIONS)]
        if len(kept) < len(tree.body) and not self.said:
            self.said = True
            why = f"the cells that you added took {self.seconds:g} s: of this and later ones only definitions run"
            self.answers.problems.append(Problem(cell, "timeout", why))
        tree.body = kept


def _run(code: CodeType, namespace: dict[str, object]) -> None:
    if not code.co_flags & inspect.CO_COROUTINE:
        exec(code, namespace)
        return
    outer = asyncio._get_running_loop()  # in a kernel, whose own loop runs: a cell waits for its `await`
    asyncio._set_running_loop(None)
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(eval(code, namespace))
    finally:
        loop.close()
        asyncio._set_running_loop(outer)


def _file_name(label: str, source: str) -> str:
    """What tracebacks call this source, entered in the line cache: never the name of another text, whose lines would be
    quoted in its place (the learner's notebook and the solution have the same name)."""
    lines, name, number = source.splitlines(keepends=True), f"<{label}>", 1
    while name in linecache.cache and linecache.cache[name][2] != lines:
        number += 1
        name = f"<{label}, version {number}>"
    linecache.cache[name] = (len(source), None, lines, name)
    return name


class _Nowhere(io.TextIOBase):
    """A standard output that drops everything."""

    def write(self, text: str) -> int:
        return len(text)


def _problem(error: BaseException, cell: int, name: str) -> Problem:
    line = (error.lineno or 0) if isinstance(error, SyntaxError) else 0
    step = error.__traceback__
    while step:
        if step.tb_frame.f_code.co_filename == name:
            line = step.tb_lineno
        step = step.tb_next
    if isinstance(error, TimeLimit):
        return Problem(cell, "timeout", "it runs too long: is there a loop that never ends?", line)
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return Problem(cell, type_name(type(error)), str(message)[:MAX_MESSAGE], line)


def load_answers(path: Path, lab: Path, exercises: Iterable[str], module: str = "__main__") -> Answers:
    """The answers of a notebook, run in this process: for the learner's own notebook and for the course's solutions.

    Raises UnreadableNotebook.
    """
    exercises = list(exercises)
    notebook, untouched = read_notebook(path), read_notebook(lab)
    pieces, warnings = choose(notebook, untouched, exercises)
    answers = execute(pieces, module, path.name, LOAD_SECONDS if module == "__main__" else None)
    answers.warnings = warnings
    answers.sources = sources(notebook, exercises, untouched)
    return answers
