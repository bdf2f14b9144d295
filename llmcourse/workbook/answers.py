"""A notebook's answers: choose what to run (trusted, nothing executed) and run it (in a process that may be untrusted).

    pieces, warnings = choose(read_notebook(path), lab, exercises)
    answers = execute(pieces)
"""

from __future__ import annotations

import ast
import io
import linecache
import sys
from collections.abc import Iterable
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType

from llmcourse.checks.codec import type_name
from llmcourse.checks.limits import TimeLimit, time_limit

from .importing import import_ahead
from .notebook import Cell, Notebook, defined_names, parse, read_notebook, source_digest

MAX_MESSAGE = 200
LOAD_SECONDS = 20.0
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Piece:
    """Source to run. label: what a traceback calls it; only_definitions: leave out everything but imports and defs."""

    label: str
    source: str
    cell: int
    only_definitions: bool = False


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


def choose(notebook: Notebook, lab: Notebook, exercises: Iterable[str]) -> tuple[list[Piece], list[str]]:
    """What of a submission runs, in order: import cells, answers, cells that the learner added; and warnings.

    The lab's import cells come first, in case they were deleted. Check cells and the lab's demonstrations are left out,
    known by their mark or, where that is lost, by their source; of a demonstration that was changed, definitions run.
    Answers are found by the names that they define, so a retyped cell counts; of duplicates the last wins.
    """
    wanted = set(exercises)
    own = {cell.digest: cell for cell in lab.cells if cell.digest}
    pieces = [Piece("import cell of the lab", cell.source, 0) for cell in lab.cells if cell.role == "imports"]
    warnings: list[str] = []
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        try:
            names = [name for name in defined_names(parse(cell.source)) if name in wanted]
        except SyntaxError:
            names = [cell.exercise] if cell.role == "answer" else []
        for name in names:
            if name in seen:
                warnings.append(f"{name} is answered in cell {seen[name]} and again in cell {cell.index}: "
                                "the last counts")
            seen[name] = cell.index
        piece = _piece(cell, bool(names), own)
        if piece:
            pieces.append(piece)
    return pieces, warnings


def _piece(cell: Cell, is_answer: bool, own: dict[str, Cell]) -> Piece | None:
    label = f"cell {cell.index}"
    if is_answer or cell.role in ("answer", "imports"):
        return Piece(label, cell.source, cell.index)
    if source_digest(cell.source) in own:
        return None
    return Piece(label, cell.source, cell.index, only_definitions=cell.role in ("own", "check"))


def sources(notebook: Notebook, exercises: Iterable[str]) -> dict[str, str]:
    """Source of the cell that answers each exercise (the last one that defines it); those without one are missing."""
    found: dict[str, str] = {}
    for cell in notebook.cells:
        try:
            names = defined_names(parse(cell.source))
        except SyntaxError:
            names = [cell.exercise] if cell.role == "answer" else []
        found.update({name: cell.source for name in names if name in set(exercises)})
    return found


def execute(pieces: Iterable[Piece], module: str = "__main__", file: str = "",
            seconds: float | None = LOAD_SECONDS) -> Answers:
    """Run the pieces in one namespace; a piece that fails becomes a problem and the next one runs.

    module: the namespace's __name__; any but "__main__" is entered in sys.modules.
    file: put before each label in tracebacks.
    seconds: for each piece, imports not counted; None for the course's own solutions, which nothing may interrupt.
    What the pieces print is dropped.
    """
    home = ModuleType(module)
    if module != "__main__":
        sys.modules[module] = home
    answers = Answers(vars(home))
    for piece in pieces:
        name = _file_name(f"{file} {piece.label}" if file else piece.label, piece.source)
        try:
            tree = parse(piece.source)
            if piece.only_definitions:
                tree.body = [node for node in tree.body if isinstance(node, _DEFINITIONS)]
            import_ahead(tree)
            with redirect_stdout(_Nowhere()), nullcontext() if seconds is None else time_limit(seconds):
                exec(compile(tree, name, "exec"), answers.objects)
        except BaseException as error:
            answers.problems.append(_problem(error, piece.cell, name))
    return answers


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
    notebook = read_notebook(path)
    pieces, warnings = choose(notebook, read_notebook(lab), exercises)
    answers = execute(pieces, module, path.name, LOAD_SECONDS if module == "__main__" else None)
    answers.warnings = warnings
    answers.sources = sources(notebook, exercises)
    return answers
