"""Read authoring/NN_name/lesson.py and lab.py (py:percent, through jupytext); make the student's version of a lab."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

from llmcourse.errors import AuthoringError

from .notebook import defined_names, parse

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
EFFORT = re.compile(r"^\*difficulty ([1-5])/5 · (\d+) minutes · unlocks: (.+)\*\s*$", re.MULTILINE)
CHECK_OUTPUT, CHECK_OUTPUT_TAG = "# NBVAL_CHECK_OUTPUT", "nbval-check-output"
_METADATA = {"ex", "check", "tags", "lines_to_next_cell"}


@dataclass(frozen=True)
class SourceCell:
    """One cell. role: "text", "answer", "check", "imports" or "own"; exercise: for an answer or a check."""

    position: int
    source: str
    role: str
    exercise: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effort:
    """The effort card before an answer, and the title above it."""

    name: str
    title: str
    difficulty: int
    minutes: int
    unlocks: str


def read_source(file: Path) -> list[SourceCell]:
    """The cells of a py:percent file, in order; raises AuthoringError for unknown cell metadata or an empty file."""
    import jupytext

    if not file.is_file():
        raise AuthoringError(f"{file.parent.name}/{file.name} is missing")
    notebook = jupytext.reads(file.read_text("utf-8"), fmt="py:percent")
    cells = [_cell(i, cell, file.name) for i, cell in enumerate(notebook.cells, 1)]
    if not cells:
        raise AuthoringError(f"{file.parent.name}/{file.name} has no cells")
    return cells


def _cell(position: int, cell, file: str) -> SourceCell:
    unknown = set(cell.metadata) - _METADATA
    if unknown:
        raise AuthoringError(f"{file}, cell {position}: unknown cell metadata {', '.join(sorted(unknown))}; "
                             "known are ex=, check= and tags=")
    tags = tuple(cell.metadata.get("tags", ()))
    if cell.cell_type != "code":
        return SourceCell(position, cell.source, "text", tags=tags)
    if cell.source.startswith(CHECK_OUTPUT):  # for the tests' eyes only: nbval reads it from the tag as well
        cell.source, tags = cell.source.removeprefix(CHECK_OUTPUT).lstrip("\n"), (*tags, CHECK_OUTPUT_TAG)
    if "ex" in cell.metadata:
        return SourceCell(position, cell.source, "answer", cell.metadata["ex"], tags)
    if "check" in cell.metadata:
        return SourceCell(position, cell.source, "check", cell.metadata["check"], tags)
    return SourceCell(position, cell.source, "imports" if _only_imports(cell.source) else "own", tags=tags)


def _only_imports(source: str) -> bool:
    try:
        body = parse(source).body
    except SyntaxError:
        return False
    return bool(body) and all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in body)


def efforts(cells: list[SourceCell]) -> dict[str, Effort]:
    """The effort card of each exercise that has one; it stands in a text cell after the answer before."""
    found: dict[str, Effort] = {}
    title, card = "", None
    for cell in cells:
        if cell.role == "text":
            headings = re.findall(r"^###+ (.+)$", cell.source, re.MULTILINE)
            title, card = (headings[-1] if headings else title), EFFORT.search(cell.source) or card
        elif cell.role == "answer":
            if card:
                found[cell.exercise] = Effort(cell.exercise, title, int(card[1]), int(card[2]), card[3].strip())
            title, card = "", None
    return found


def student_version(cells: list[SourceCell]) -> list[SourceCell]:
    """The lab without its solutions."""
    return [replace(cell, source=stub(cell.source)) if cell.role == "answer" else cell for cell in cells]


def solution_version(cells: list[SourceCell]) -> list[SourceCell]:
    """The lab with its solutions, without the marks around them."""
    return [replace(cell, source=_unmarked(cell.source)) if cell.role == "answer" else cell for cell in cells]


def regions(source: str) -> list[tuple[int, int]]:
    """Line numbers (from 0) of each BEGIN mark and its END mark; raises AuthoringError where they do not pair up."""
    pairs, start = [], None
    for i, line in enumerate(source.splitlines()):
        if line.strip() == BEGIN and start is None:
            start = i
        elif line.strip() == END and start is not None:
            pairs.append((start, i))
            start = None
        elif line.strip() in (BEGIN, END):
            raise AuthoringError(f"line {i + 1}: {line.strip()!r} without its partner")
    if start is not None:
        raise AuthoringError(f"line {start + 1}: {BEGIN!r} without {END!r}")
    return pairs


def stub(source: str) -> str:
    """The student's version of an answer cell.

    In a function the region becomes `raise NotImplementedError`; in a class every public method and every special one
    keeps its signature and docstring and raises. Private helpers are left out.
    """
    lines = source.splitlines()
    (start, stop), = regions(source)
    indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
    inside = ast.parse(textwrap.dedent("\n".join(lines[start + 1:stop])))
    if _in_class(source, start + 1):
        text = textwrap.dedent("\n".join(lines[start + 1:stop])).splitlines()
        methods = [node for node in inside.body if isinstance(node, ast.FunctionDef) and _is_public(node.name)]
        body = textwrap.indent("\n\n".join(_method_stub(text, node) for node in methods), indent).splitlines()
    else:
        body = [f"{indent}raise NotImplementedError"]
    return "\n".join([*lines[:start], *body, *lines[stop + 1:]])


def _in_class(source: str, line: int) -> bool:
    """Whether this line (from 1) is directly in the body of a top-level class."""
    owner = next((n for n in ast.parse(source).body if n.lineno <= line <= n.end_lineno), None)
    if not isinstance(owner, ast.ClassDef):
        return False
    return not any(n.lineno <= line <= n.end_lineno for n in owner.body if isinstance(n, ast.FunctionDef))


def _is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def _method_stub(lines: list[str], node: ast.FunctionDef) -> str:
    """Decorators, signature and docstring of a method, then the raise."""
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
    body = node.body[0]
    has_doc = ast.get_docstring(node) is not None
    if has_doc:
        kept = lines[first:body.end_lineno]
    else:
        kept = [*lines[first:body.lineno - 1], lines[body.lineno - 1][:body.col_offset]]
        while not kept[-1].strip() or kept[-1].lstrip().startswith("#"):
            kept.pop()
    return "\n".join([line.rstrip() for line in kept] + ["    raise NotImplementedError"])


def _unmarked(source: str) -> str:
    return "\n".join(line for line in source.splitlines() if line.strip() not in (BEGIN, END))


def answer_node(cell: SourceCell) -> ast.FunctionDef | ast.ClassDef | None:
    """The function or class of an answer cell, None where the cell defines nothing of that name."""
    tree = ast.parse(cell.source)
    if cell.exercise not in defined_names(tree):
        return None
    return next((n for n in tree.body if getattr(n, "name", "") == cell.exercise), None)
