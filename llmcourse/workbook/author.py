"""Build the notebooks from authoring/: `build()`, `stale()` and `new()`, behind `llmcourse author`."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import llmcourse
from llmcourse.checks import LESSONS, Exercise
from llmcourse.errors import AuthoringError

from .bans import with_ban
from .course import PACKAGE, Course, course
from .notebook import source_digest
from .rules import problems
from .signposts import around
from .source import SourceCell, efforts, read_source, solution_version, student_version

NO_REPOSITORY = "lessons are built in a clone of the repository: there is no authoring/ folder here"
FOLDERS = {"lesson": "notebooks", "exercise": "exercises", "solution": "solutions"}


def build(lessons: Iterable[str] = (), *, force: bool = False, root: Path | None = None,
          say: Callable[[str], None] = lambda line: None) -> list[Path]:
    """Write and execute the notebooks of these lessons, or of all whose notebooks are stale; returns what was written.

    lessons: "01" or "01_tokenizer"; those named are built even when they are up to date.
    force: overwrite generated notebooks that a person changed.
    say: called with a line when a lesson's turn comes, since a run takes a while.
    Raises AuthoringError when a source is malformed, a cell raises, or a notebook was changed by a person.
    """
    ours = _repository(root)
    named = [_full_name(ours, number) for number in lessons]
    written: list[Path] = []
    for name in named or sources(ours):
        if not named and not stale(ours, name):
            continue
        found = problems(ours, name)
        if found:
            raise AuthoringError("\n".join(found))
        say(f"building {name}")
        written += _build_one(ours, name, force)
    return written


def check(lessons: Iterable[str] = (), *, root: Path | None = None) -> list[str]:
    """Everything malformed or stale, one line each; an empty list when all is well."""
    ours = _repository(root)
    names = [_full_name(ours, number) for number in lessons] or sources(ours)
    found = [] if names else ["authoring/ has no lessons"]
    for name in names:
        mine = problems(ours, name)
        found += mine or stale(ours, name)
    if not lessons:
        found += _orphans(ours, names)
    return found


def sources(ours: Course) -> list[str]:
    """Full names of the lessons that have sources, in order."""
    return sorted(p.name for p in (ours.root / "authoring").glob("[0-9][0-9]_*") if p.is_dir())


def stale(ours: Course, name: str) -> list[str]:
    """What is not as the builder would write it in one lesson's notebooks, outputs apart; and failed runs."""
    found = []
    for kind, folder in FOLDERS.items():
        file, where = ours.root / folder / f"{name}.ipynb", f"{folder}/{name}.ipynb"
        if not file.is_file():
            found.append(f"{where} is missing: run llmcourse author build {name[:2]}")
            continue
        try:
            present = json.loads(file.read_text("utf-8"))
        except ValueError as error:
            found.append(f"{where} is not a notebook: {error}")
            continue
        if changed_by_hand(present):
            found.append(f"{where} was changed by hand: move the change to authoring/{name}/")
        elif _bare(present) != _bare(generate(ours, name, kind)):
            found.append(f"{where} is stale: run llmcourse author build {name[:2]}")
        found += [f"{where}: {line}" for line in _run_problems(present, kind)]
    return found


def _run_problems(notebook: dict, kind: str) -> list[str]:
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    errors = [o for cell in code for o in cell["outputs"] if o["output_type"] == "error"]
    found = [f"an output is an error: {o.get('ename')}: {o.get('evalue')}" for o in errors]
    ids = [cell.get("id") for cell in notebook["cells"]]
    if len(set(ids)) < len(ids):
        found.append("cell ids are not unique")
    if kind != "exercise" and any(cell["execution_count"] is None for cell in code if cell["source"]):
        found.append("not every cell was executed")
    return found


def _orphans(ours: Course, names: list[str]) -> list[str]:
    files = (f for folder in FOLDERS.values() for f in sorted((ours.root / folder).glob("*.ipynb")))
    return [f"{f.parent.name}/{f.name} has no source in authoring/" for f in files if f.stem not in names]


def generate(ours: Course, name: str, kind: str) -> dict:
    """A notebook as JSON, without outputs; the same source gives the same notebook.

    kind: "lesson", "exercise" or "solution".
    """
    file = ours.root / "authoring" / name / ("lesson.py" if kind == "lesson" else "lab.py")
    authored = read_source(file)
    cells = {"lesson": list, "exercise": student_version, "solution": solution_version}[kind](authored)
    if kind != "lesson":
        cells = _with_bans(cells, ours.lesson_named(name).exercises)
    ids = iter(_ids(name[:2], authored))
    content = [_notebook_cell(cell, f"{name[:2]}-{own}" if own else next(ids), kind)
               for own, cell in around(kind, name, cells, sources(ours))]
    source = hashlib.sha256(file.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
    mark = {"kind": kind, "lesson": name[:2], "name": name, "version": llmcourse.__version__, "source": source,
            "cells": _cells_digest(content)}
    if kind != "lesson":
        mark["exercises"] = [vars(card) for card in efforts(authored).values()]
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                "language_info": {"name": "python"}, "llmcourse": mark}
    return {"cells": content, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _with_bans(cells: list[SourceCell], exercises: dict[str, Exercise]) -> list[SourceCell]:
    """The lab with what each exercise forbids in its docstring."""
    return [replace(cell, source=with_ban(cell.source, cell.exercise, exercises[cell.exercise].forbids))
            if cell.role == "answer" and cell.exercise in exercises else cell for cell in cells]


def _ids(number: str, cells: list[SourceCell]) -> list[str]:
    """One id a cell: by exercise for answers and checks, else by content, so that an insertion moves no other id."""
    ids: list[str] = []
    for cell in cells:
        base = f"{number}-{cell.role}-{cell.exercise or source_digest(cell.source)[:8]}"
        wanted, again = base, 1
        while wanted in ids:
            again += 1
            wanted = f"{base}-{again}"
        ids.append(wanted)
    return ids


def _notebook_cell(cell: SourceCell, cell_id: str, kind: str) -> dict:
    metadata: dict = {"tags": list(cell.tags)} if cell.tags else {}
    if cell.role == "text":
        return {"cell_type": "markdown", "id": cell_id, "metadata": metadata, "source": cell.source}
    if kind != "lesson":
        metadata["llmcourse"] = {"role": cell.role, "digest": source_digest(cell.source)}
        if cell.exercise:
            metadata["llmcourse"]["exercise"] = cell.exercise
    return {"cell_type": "code", "id": cell_id, "metadata": metadata, "source": cell.source, "outputs": [],
            "execution_count": None}


def changed_by_hand(notebook: dict) -> bool:
    """Whether the cells of a notebook are not those that the builder wrote into it (or it was never built)."""
    mark = notebook.get("metadata", {}).get("llmcourse", {})
    return mark.get("cells") != _cells_digest(notebook["cells"])


def _cells_digest(cells: list[dict]) -> str:
    content = [[cell["cell_type"], _text(cell["source"])] for cell in cells]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def _bare(notebook: dict) -> dict:
    """A notebook without what running it adds, and without the version that built it."""
    unrun = {"outputs": [], "execution_count": None}
    cells = [{**cell, "source": _text(cell["source"]), **(unrun if cell["cell_type"] == "code" else {})}
             for cell in notebook["cells"]]
    metadata = {**notebook["metadata"], "language_info": {"name": "python"}}
    metadata["llmcourse"] = {k: v for k, v in metadata.get("llmcourse", {}).items() if k != "version"}
    return {**notebook, "cells": cells, "metadata": metadata}


def _build_one(ours: Course, name: str, force: bool) -> list[Path]:
    """Exercise first, then the unexecuted solution (checks in the solution's run need it as their reference)."""
    from .running import run_notebook

    files = {kind: ours.root / folder / f"{name}.ipynb" for kind, folder in FOLDERS.items()}
    for file in files.values():
        if file.is_file() and not force and changed_by_hand(json.loads(file.read_text("utf-8"))):
            raise AuthoringError(f"{file.parent.name}/{file.name} was changed by hand; move the change to "
                                 f"authoring/{name}/, or build with --force to lose it")
    for kind in ("exercise", "solution"):
        write_notebook(files[kind], generate(ours, name, kind))
    for kind in ("solution", "lesson"):
        write_notebook(files[kind], run_notebook(generate(ours, name, kind), files[kind], ours.root))
    return list(files.values())


def write_notebook(file: Path, notebook: dict) -> None:
    """Write a notebook's JSON so that equal notebooks are equal bytes; a reader never sees half a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    cells = [{**cell, "source": _text(cell["source"]).splitlines(keepends=True)} for cell in notebook["cells"]]
    part = file.with_name(file.name + ".part")
    text = json.dumps({**notebook, "cells": cells}, indent=1, sort_keys=True, ensure_ascii=False)
    part.write_text(text + "\n", "utf-8")
    os.replace(part, file)


def _repository(root: Path | None) -> Course:
    ours = Course(root) if root else course()
    if not (ours.root / "authoring").is_dir() or ours.root.is_relative_to(PACKAGE):
        raise AuthoringError(NO_REPOSITORY)
    return ours


def _full_name(ours: Course, number: str) -> str:
    found = [name for name in sources(ours) if name == number or name[:2] == number.zfill(2)]
    if not found:
        raise AuthoringError(f"authoring/ has no lesson {number!r}; it has: {', '.join(sources(ours)) or 'none'}")
    return found[0]


def new(name: str, *, root: Path | None = None) -> list[Path]:
    """Make a lesson's four files, small but complete: they build, and pass the gates. Returns their paths.

    Raises AuthoringError for a name that is not like 03_attention or not in the course's list, or a file that exists.
    """
    if not re.fullmatch(r"\d\d_[a-z][a-z0-9_]*", name):
        raise AuthoringError(f"{name!r} is not a lesson's name; it is two digits and words, such as 03_attention")
    base = root or course().root
    if base.is_relative_to(PACKAGE):
        raise AuthoringError(NO_REPOSITORY)
    inside = base.resolve() == PACKAGE.parent
    if inside and LESSONS.get(name[:2]) != name[3:]:
        raise AuthoringError(f"lesson {name[:2]} is named {LESSONS.get(name[:2])!r} in llmcourse/checks/catalog.py, "
                             f"not {name[3:]!r}")
    skeleton = Path(__file__).parent / "skeleton"
    folder = base / "authoring" / name
    probes = PACKAGE / "checks" / f"{name[3:]}.py" if inside else base / "checks" / f"{name}.py"
    targets = {skeleton / f"{part}.py.txt": folder / f"{part}.py" for part in ("lesson", "lab", "wrong")}
    targets[skeleton / "checks.py.txt"] = probes
    for target in targets.values():
        if target.exists():
            raise AuthoringError(f"{target.relative_to(base)} exists already")
    for template, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        text = template.read_text("utf-8").replace("{{number}}", name[:2])
        text = text.replace("{{title}}", name[3:].replace("_", " "))
        target.write_text(text, "utf-8")
    return list(targets.values())
