"""Which of a notebook's cells run when its answers are loaded: trusted code that executes nothing of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from .ipython_lines import not_run
from .names import bound, used
from .notebook import Cell, Notebook, as_python, defined_names, parse, source_digest

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
NO_CELL = "no cell answers"
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)


@dataclass(frozen=True)
class Snippet:
    """Source to run.

    label: what a traceback calls it. python: the source without IPython's lines, "" where that is the source itself.
    only_definitions: leave out everything but imports, functions, classes, and the statements on the lines `also`.
    own: a cell that the learner added; all of them together have the time of one.
    """

    label: str
    source: str
    cell: int
    only_definitions: bool = False
    python: str = ""
    also: tuple[int, ...] = ()
    own: bool = False

    def tree(self) -> ast.Module:
        """What of it runs. Raises SyntaxError."""
        tree = parse(self.python or self.source)
        if self.only_definitions:
            tree.body = [one for one in tree.body if isinstance(one, DEFINITIONS) or one.lineno in self.also]
        return tree


@dataclass
class _ReadCell:
    """A cell and its tree (None where its syntax is wrong), and which exercises it answers."""

    cell: Cell
    tree: ast.Module | None
    answers: list[str] = field(default_factory=list)


def choose(notebook: Notebook, lab: Notebook, exercises: Iterable[str]) -> tuple[list[Snippet], list[str]]:
    """What of a submission runs, in order: import cells, answers, cells that the learner added; and warnings.

    The lab's import cells come first, in case they were deleted. Check cells and the lab's demonstrations are left out,
    known by their mark or, where that is lost, by their source; of one that was changed, definitions run, and what the
    learner added to it and an answer needs. Answers are found by the names that they define, so a retyped cell counts;
    of duplicates the last wins, but never an untouched one.
    """
    wanted = list(exercises)
    read, warnings = answer_cells(notebook, lab, wanted)
    own = {cell.digest: cell for cell in lab.cells if cell.digest}
    pieces = [Snippet("import cell of the lab", cell.source, 0) for cell in lab.cells if cell.role == "imports"]
    pieces += [piece for one in read if (piece := _snippet(one, own))]
    pieces, more = _with_what_answers_need(pieces, read, own)
    unanswered = set(wanted) - {name for one in read for name in one.answers} - {
        one.cell.exercise for one in read if one.cell.role == "answer"}
    warnings += [f"{NO_CELL} {name}: its cell was deleted, or defines another name" for name in wanted if name in unanswered]
    skipped = [f"{what} in cell {one.cell.index} is for a kernel and does nothing here"
               for one in read if one.tree and source_digest(one.cell.source) not in own for what in not_run(one.tree)]
    return pieces, [*warnings, *more, *skipped]


def answer_cells(notebook: Notebook, lab: Notebook, exercises: Iterable[str]) -> tuple[list[_ReadCell], list[str]]:
    """The notebook's cells with the exercises that each answers, and warnings. The last one with an answer counts; the
    untouched cell of an exercise that another cell answers is left out."""
    wanted, read = set(exercises), []
    stubs = {cell.exercise: cell for cell in lab.cells if cell.role == "answer"}
    for cell in notebook.cells:
        try:
            one = _ReadCell(cell, parse(cell.source))
            one.answers = [name for name in defined_names(one.tree) if name in wanted]
        except SyntaxError:
            one = _ReadCell(cell, None, [cell.exercise] if cell.role == "answer" and cell.exercise in wanted else [])
        read.append(one)
    written = {name for one in read for name in one.answers if not _is_stub(one, stubs.get(name))}
    read = [one for one in read if not (one.answers and set(one.answers) <= written
                                        and all(_is_stub(one, stubs.get(name)) for name in one.answers))]
    warnings, seen = [], {}
    for one in read:
        for name in one.answers:
            if name in seen:
                warnings.append(f"{name} is answered in cell {seen[name]} and again in cell {one.cell.index}: "
                                "the last counts")
            seen[name] = one.cell.index
    return read, warnings


def _is_stub(one: _ReadCell, stub: Cell | None) -> bool:
    """Whether a cell is the lab's own, comments and blanks apart."""
    return stub is not None and one.tree is not None and ast.dump(one.tree) == ast.dump(parse(stub.source))


def sources(notebook: Notebook, exercises: Iterable[str], lab: Notebook | None = None) -> dict[str, str]:
    """Source of the cell that answers each exercise (the last one that defines it); those without one are missing.

    lab: the untouched one, where its own cells are not to count beside an answer.
    """
    read, _ = answer_cells(notebook, lab or Notebook(notebook.path, ()), exercises)
    return {name: one.cell.source for one in read for name in one.answers}


def _snippet(one: _ReadCell, own: dict[str, Cell]) -> Snippet | None:
    cell, label = one.cell, f"cell {one.cell.index}"
    python = _python(one)
    if one.answers or cell.role in ("answer", "imports"):
        return Snippet(label, cell.source, cell.index, python=python)
    if source_digest(cell.source) in own:
        return None
    if cell.role in ("own", "check"):
        return Snippet(label, cell.source, cell.index, only_definitions=True, python=python)
    return Snippet(label, cell.source, cell.index, python=python, own=True)


def _python(one: _ReadCell) -> str:
    """The cell's source without IPython's lines, "" where it has none."""
    python = as_python(one.cell.source) if one.tree else ""
    return "" if python == one.cell.source else python


def _with_what_answers_need(pieces: list[Snippet], read: list[_ReadCell], own: dict[str, Cell]) -> tuple[list[Snippet], list[str]]:
    """The pieces, with statements that a learner added to the lab's own cells where what runs needs their names; and
    what is needed but set only by a demonstration, which does not run."""
    trees = [tree for piece in pieces if (tree := _tree(piece))]
    have = set().union(*(bound(tree.body) for tree in trees))
    needed = set().union(*(used(tree.body) for tree in trees)) - have
    added = [(one, node) for one in read if one.tree and _is_changed(one.cell, own) for node in _added(one, own)]
    kept: dict[int, list[int]] = {}
    while True:
        found = [(one, node) for one, node in added
                 if node.lineno not in kept.get(one.cell.index, []) and bound([node]) & needed]
        if not found:
            break
        for one, node in found:
            kept.setdefault(one.cell.index, []).append(node.lineno)
            have |= bound([node])
            needed |= used([node]) - have
    pieces = [replace(piece, also=tuple(kept.get(piece.cell, ()))) if piece.only_definitions else piece for piece in pieces]
    return pieces, _set_elsewhere(needed - have, read, own)


def _tree(piece: Snippet) -> ast.Module | None:
    try:
        return piece.tree()
    except SyntaxError:
        return None


def _is_changed(cell: Cell, own: dict[str, Cell]) -> bool:
    return cell.role in ("own", "check") and source_digest(cell.source) not in own


def _added(one: _ReadCell, own: dict[str, Cell]) -> list[ast.stmt]:
    """Assignments that the lab's own version of the cell does not have."""
    before = own.get(one.cell.digest)
    known = {ast.dump(node) for node in parse(before.source).body} if before else set()
    return [node for node in one.tree.body if isinstance(node, _ASSIGNMENTS) and ast.dump(node) not in known]


def _set_elsewhere(needed: set[str], read: list[_ReadCell], own: dict[str, Cell]) -> list[str]:
    """Words for each needed name that only a demonstration or a check sets."""
    found = []
    for one in read:
        if one.tree and not one.answers and (one.cell.role in ("own", "check") or source_digest(one.cell.source) in own):
            found += [f"{name} is set in cell {one.cell.index}, one of the lab's demonstrations, which do not run here: "
                      "set it in a cell of your own" for name in sorted(bound(one.tree.body) & needed)]
    return found
