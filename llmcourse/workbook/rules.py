"""What a lesson's source must have: `problems(...)` gives one line for each rule that is broken."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from llmcourse.checks import Lesson, load_wrong
from llmcourse.errors import AuthoringError, CourseError

from .course import Course
from .notebook import parse
from .source import (SourceCell, answer_node, efforts, read_source, regions, solution_version, student_version)

LEAST_WRONG_ANSWERS = 3
SHORTEST_TELLING_LINE = 20


def problems(course: Course, name: str) -> list[str]:
    """Everything that is malformed in authoring/`name`/, one line each; an empty list when all is well."""
    folder = course.root / "authoring" / name
    found: list[str] = []
    try:
        lesson_cells = read_source(folder / "lesson.py")
        found += _import_problems("lesson.py", lesson_cells) + _prediction_problems(lesson_cells)
    except AuthoringError as error:
        found.append(str(error))
    try:
        lab = read_source(folder / "lab.py")
    except AuthoringError as error:
        return [f"{name}: {line}" for line in (*found, str(error))]
    found += _import_problems("lab.py", lab) + _lab_problems(lab) + _order_problems(course, name, lab)
    try:
        lesson = course.lesson_named(name)
    except CourseError as error:
        found.append(str(error))
    else:
        found += _probe_problems(lab, lesson) + _wrong_problems(folder / "wrong.py", lesson)
    return [f"{name}: {line}" for line in found]


def _import_problems(file: str, cells: list[SourceCell]) -> list[str]:
    """torch reads how its threads shall wait when it is loaded, and `import llmcourse` is what tells it."""
    for cell in cells:
        for line in cell.source.splitlines():
            if re.match(r"(from|import) llmcourse\b", line):
                return []
            if re.match(r"(from|import) (torch|transformers)\b", line):
                return [f"{file} imports torch before llmcourse, which sets how torch's threads wait: turn the two around"]
    return []


def _prediction_problems(cells: list[SourceCell]) -> list[str]:
    """Predictions that arrive with a number: it would be the author's, and the reader's own is the point."""
    filled = re.compile(r"""^predict\(\s*(["']).*?\1\s*,\s*(value\s*=\s*)?[-+.]?\d""", re.MULTILINE)
    return [f"lesson.py writes the reader's prediction in cell {cell.position}: ship predict(\"name\", ..., \"unit\")"
            for cell in cells if cell.role != "text" and filled.search(cell.source)]


def _lab_problems(lab: list[SourceCell]) -> list[str]:
    answers = [cell for cell in lab if cell.role == "answer"]
    found = [] if answers else ["lab.py has no exercise: mark an answer cell with ex=\"name\""]
    for exercise, times in Counter(cell.exercise for cell in answers).items():
        if times > 1:
            found.append(f"exercise {exercise!r} has {times} answer cells")
    cards = efforts(lab)
    checked = {cell.exercise for cell in lab if cell.role == "check"}
    well_formed = True
    for cell in answers:
        if cell.exercise not in cards:
            found.append(f"{cell.exercise}: no effort card before it: "
                         "*difficulty 2/5 · 15 minutes · unlocks: …* (unlocks: nothing, where it is not in the engine)")
        if cell.exercise not in checked:
            found.append(f"{cell.exercise}: no cell with check=\"{cell.exercise}\"")
        mine = _answer_problems(cell)
        well_formed = well_formed and not mine
        found += [f"{cell.exercise}: {line}" for line in mine]
    for name in checked - {cell.exercise for cell in answers}:
        found.append(f"check={name!r} belongs to no answer cell")
    return found + (_leaks(lab) if answers and well_formed else [])


def _answer_problems(cell: SourceCell) -> list[str]:
    try:
        pairs = regions(cell.source)
        node = answer_node(cell)
    except (AuthoringError, SyntaxError) as error:
        return [str(error)]
    if len(pairs) != 1:
        return [f"{len(pairs)} solution regions in its cell; there must be one"]
    if node is None:
        return ["its cell defines no function or class of that name"]
    doc = ast.get_docstring(node)
    return _docstring_problems(doc, node, cell.source) if doc else ["no docstring"]


def _docstring_problems(doc: str, node: ast.FunctionDef | ast.ClassDef, source: str) -> list[str]:
    found, description = [], doc.partition("Example")[0]
    if not re.search(r"\bExample", doc) or not re.search(r"\d", doc[doc.find("Example"):]):
        found.append("docstring without a worked example with numbers (Example: …)")
    if isinstance(node, ast.FunctionDef):
        functions = [node]
        if not re.search(r"\breturns?\b", doc, re.IGNORECASE):
            found.append("docstring does not say what it returns")
    else:
        functions = [f for f in node.body if isinstance(f, ast.FunctionDef) and not f.name.startswith("_")]
        found += [f"docstring says nothing about the method {f.name}" for f in functions
                  if not re.search(rf"\b{f.name}\b", description) and not ast.get_docstring(f)]
    for function in functions:
        text = doc + (ast.get_docstring(function) or "")
        silent = [a.arg for a in function.args.args if a.arg != "self" and not re.search(rf"\b{a.arg}\b", text)]
        found += [f"docstring says nothing about the argument {name}" for name in silent]
    if re.search(r"\btorch\b|\bTensor\b", source) and not re.search(r"\[[^\]\n]*\]", description):
        found.append("docstring gives no shapes, such as [n, d]")
    return found


def _leaks(lab: list[SourceCell]) -> list[str]:
    """Lines of a solution that the student's version still shows."""
    solved, open_lab = solution_version(lab), student_version(lab)
    secret = {}
    for before, after in zip(solved, open_lab):
        if before.role == "answer":
            kept = {line.strip() for line in after.source.splitlines()}
            lines = {line.strip() for line in before.source.splitlines()} - kept
            secret.update({line: before.exercise for line in lines if len(line) >= SHORTEST_TELLING_LINE})
    found = []
    for cell in open_lab:
        for line in cell.source.splitlines():
            if line.strip() in secret:
                found.append(f"{secret[line.strip()]}: solution text is left in cell {cell.position}: {line.strip()!r}")
    return found


def _order_problems(course: Course, name: str, lab: list[SourceCell]) -> list[str]:
    """Pieces that a lab takes from itself, or names from a later lab: its learner has neither."""
    own = {cell.exercise for cell in lab if cell.role == "answer"}
    later: dict[str, str] = {}
    for folder in sorted((course.root / "authoring").glob("[0-9][0-9]_*")):
        if folder.name > name and (folder / "lab.py").is_file():
            theirs = (cell for cell in read_source(folder / "lab.py") if cell.role == "answer")
            later.update({cell.exercise: folder.name for cell in theirs})
    found = []
    for cell in lab:
        if cell.role == "text":
            continue
        given, used = _names(cell.source)
        found += [f"cell {cell.position} uses the given piece of this very lab, {one}" for one in sorted(given & own)]
        found += [f"cell {cell.position} uses {one} of a later lab, {later[one]}"
                  for one in sorted((given | used - own) & set(later))]
    return found


def _names(source: str) -> tuple[set[str], set[str]]:
    """Names taken from llmcourse.given, and names that the cell reads without defining them itself."""
    try:
        nodes = list(ast.walk(parse(source)))
    except SyntaxError:
        return set(), set()
    imports = [n for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom))]
    given = {alias.name for n in imports if getattr(n, "module", "") == "llmcourse.given" for alias in n.names}
    attributes = (n for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name))
    given |= {n.attr for n in attributes if n.value.id == "given"}
    read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    bound |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    bound |= {alias.asname or alias.name for n in imports for alias in n.names}
    return given, read - bound


def _probe_problems(lab: list[SourceCell], lesson: Lesson) -> list[str]:
    in_lab = [cell.exercise for cell in lab if cell.role == "answer"]
    declared = list(lesson.exercises)
    if in_lab != declared:
        return [f"the lab's exercises are {', '.join(in_lab) or 'none'}; "
                f"its probes declare {', '.join(declared) or 'none'}"]
    found = []
    for name in declared:
        for hidden in (False, True):
            if not lesson.of(name, hidden=hidden):
                found.append(f"{name}: no {'hidden' if hidden else 'visible'} probe")
    return found


def _wrong_problems(file: Path, lesson: Lesson) -> list[str]:
    try:
        wrongs = load_wrong(file)
    except CourseError as error:
        return [str(error)]
    counts = Counter(one.exercise for one in wrongs)
    found = [f"{name}: {counts[name]} named wrong answers; there must be at least {LEAST_WRONG_ANSWERS}"
             for name in lesson.exercises if counts[name] < LEAST_WRONG_ANSWERS]
    strange = [name for name in counts if name not in lesson.exercises]
    return found + [f"wrong.py names an exercise {name!r} that the lab lacks" for name in strange]
