"""Read a notebook's cells as data, from any file that a person may have mangled; nothing is executed here."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from llmcourse.errors import UnreadableNotebook

from .ipython_lines import to_python

MAX_FILE_BYTES = 50_000_000
_MAY_BE_IPYTHONS = re.compile(r"[%!?]|^\s*>>> |^\s*In \[|^[ \t]", re.MULTILINE)
COURSE_CALLS = ("check", "hint", "predict", "measured", "explore")


@dataclass(frozen=True)
class Cell:
    """One code cell.

    index: position in the notebook, markdown cells counted, from 1.
    role: "answer", "check", "imports", "own" (the lab's other cells), or "" for one without the builder's mark.
    exercise: for an answer or a check.
    run: the number in brackets that Jupyter shows beside it, None for a cell that was not run.
    """

    index: int
    source: str
    role: str = ""
    exercise: str = ""
    digest: str = ""
    run: int | None = None

    @property
    def untouched(self) -> bool:
        """Whether the source is still the one that the builder wrote."""
        return bool(self.digest) and source_digest(self.source) == self.digest


@dataclass(frozen=True)
class Notebook:
    """Code cells and the builder's metadata ({} when there is none)."""

    path: Path
    cells: tuple[Cell, ...]
    metadata: dict = field(default_factory=dict)

    @property
    def marked(self) -> str:
        """The lesson's number, as the builder's mark says it, else ""."""
        said = self.metadata.get("lesson")
        return said if isinstance(said, str) and re.fullmatch(r"\d\d", said) else ""

    @property
    def lesson(self) -> str:
        """The lesson's number: from the builder's mark, else from the file's name, else ""."""
        if self.marked:
            return self.marked
        match = re.search(r"(?<!\d)(\d\d)_[a-z]", self.path.name)
        return match[1] if match else ""


def read_notebook(path: Path) -> Notebook:
    """The notebook's code cells; formats 3 and 4, sources as text or as lists of lines, metadata missing or odd.

    Raises UnreadableNotebook with the reason.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UnreadableNotebook(f"{path.name} is larger than {MAX_FILE_BYTES:,} bytes")
        raw = path.read_bytes()
    except OSError as error:
        raise UnreadableNotebook(f"{path.name} cannot be read: {error.strerror or error}") from error
    return parse_notebook(raw, path)


def parse_notebook(raw: bytes, path: Path) -> Notebook:
    """The same for a file's content that was read before. Raises UnreadableNotebook."""
    try:
        content = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UnreadableNotebook(f"{path.name} is not a notebook: {error}") from error
    if not isinstance(content, dict):
        raise UnreadableNotebook(f"{path.name} is not a notebook: it holds a {type(content).__name__}, not cells")
    cells_in = content.get("cells")
    if cells_in is None and isinstance(content.get("worksheets"), list):
        sheets = [sheet.get("cells") for sheet in content["worksheets"] if isinstance(sheet, dict)]
        cells_in = [cell for sheet in sheets if isinstance(sheet, list) for cell in sheet]
    if not isinstance(cells_in, list):
        raise UnreadableNotebook(f"{path.name} is not a notebook: it has no list of cells")
    numbered = [(i, one) for i, one in enumerate(cells_in, 1) if isinstance(one, dict)]
    cells = [_cell(i, one) for i, one in numbered if one.get("cell_type") == "code"]
    return Notebook(path, tuple(cells), _course_metadata(content))


def _cell(index: int, raw: dict) -> Cell:
    source = raw.get("source", raw.get("input", ""))
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    if not isinstance(source, str):
        source = ""
    mark = {key: value for key, value in _course_metadata(raw).items() if isinstance(value, str)}
    run = raw.get("execution_count", raw.get("prompt_number"))
    return Cell(index, source, mark.get("role", ""), mark.get("exercise", ""), mark.get("digest", ""),
                run if type(run) is int else None)


def _course_metadata(raw: dict) -> dict:
    metadata = raw.get("metadata")
    mine = metadata.get("llmcourse") if isinstance(metadata, dict) else None
    return mine if isinstance(mine, dict) else {}


def source_digest(source: str) -> str:
    """16 hex digits of a cell's source; blanks at the ends of lines and of the cell do not count."""
    text = "\n".join(line.rstrip() for line in source.strip().splitlines())
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def parse(source: str) -> ast.Module:
    """The cell's syntax tree, without calls of the course's own; IPython's lines are read as IPython reads them.

    Line numbers are those of the cell. Raises SyntaxError, also for code nested too deeply to parse.
    """
    tree = _parse(as_python(source))
    tree.body = [node for node in tree.body if not _is_course_call(node)]
    return tree


def as_python(source: str) -> str:
    """The cell's source without IPython's lines (see ipython_lines); what is Python already stays as it is.

    Raises SyntaxError.
    """
    try:
        _parse(source)
    except SyntaxError:
        if not _MAY_BE_IPYTHONS.search(source):
            raise
        try:
            return to_python(source)
        except (RecursionError, MemoryError, ValueError) as error:
            raise SyntaxError(str(error) or type(error).__name__) from error
    return source


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (RecursionError, MemoryError, ValueError) as error:
        raise SyntaxError(str(error) or type(error).__name__) from error


def _is_course_call(node: ast.stmt) -> bool:
    """`check(...)` and the like as a statement of its own."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return name in COURSE_CALLS


def defined_names(tree: ast.Module) -> list[str]:
    """Functions, classes and plain variables that the cell defines at its top level, in order."""
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return names


def defined_in(notebook: Notebook) -> list[str]:
    """The same for all cells of a notebook that Python can read."""
    names: list[str] = []
    for cell in notebook.cells:
        try:
            names += defined_names(parse(cell.source))
        except SyntaxError:
            continue  # what it would define cannot be known
    return names
