"""What a worker of a lab sees of the file system (`files_for`), and which code it must not see (`secret_code`)."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from llmcourse.checks import Lesson
from llmcourse.workbook.course import PACKAGE, Course

from .filesystem import VisibleFiles

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
)
_NEEDED = tuple(PACKAGE.name + part for part in ("", ".given", ".checks", ".workbook", ".grade", ".errors"))


def files_for(course: Course, lesson: Lesson, cache: Path, root: Path, private: Iterable[Path]) -> VisibleFiles:
    """The system's and Python's own files, this package, and the course's untouched labs and earlier solutions.

    cache: the course's models and vocabularies. root: an empty folder to mount on.
    private: files and folders that no worker may see even where they lie inside what it sees: submissions, reports,
    an instructor's probes.
    """
    shown = [*_SYSTEM, *python_folders(), str(PACKAGE), str(cache), str(course.root / "exercises")]
    shown += [str(course.solution(lab)) for lab in course.labs() if lab[:2] < lesson.number]
    shown = _outermost(real for path in shown if os.path.lexists(path) for real in (path, os.path.realpath(path)))
    hidden = [str(path) for path in (*private, *secret_files(course, lesson))]
    hidden = [path for one in hidden for path in {os.path.abspath(one), os.path.realpath(one)}]
    allowed = {os.path.realpath(course.root / "exercises")}
    return VisibleFiles(str(root), tuple(shown), tuple(sorted({p for p in hidden if p not in allowed and _inside(p, shown)})))


def python_folders() -> list[str]:
    """Where this Python and its packages are, without the folder that holds this package: it may hold the course."""
    asked = subprocess.run(
        [sys.executable, "-I", "-c", "import json, sys; print(json.dumps(sys.path))"],
        stdout=subprocess.PIPE,
        check=True,
    )
    installed = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sysconfig.get_paths().values()]
    others = [path for path in json.loads(asked.stdout) if os.path.abspath(path) != str(PACKAGE.parent)]
    return [path for path in (*installed, *others, os.path.dirname(sys.executable)) if os.path.isdir(path)]


def secret_files(course: Course, lesson: Lesson) -> list[Path]:
    """The course's own solutions and sources, the lab's probes, and the code that its answers may not call."""
    data = PACKAGE / "data" / "course"
    found = [folder / name for folder in (course.root, data) for name in ("authoring", "checks", "notebooks")]
    found += [
        file
        for folder in (course.root, data)
        for file in (folder / "solutions").glob("*.ipynb")
        if file.name[:2] >= lesson.number
    ]
    found += sorted(lesson.files())
    found += sorted({file.parent / "__pycache__" for file in lesson.files()})  # the same, compiled
    return found + [file for file, _ in secret_code(lesson)]


def secret_code(lesson: Lesson) -> list[tuple[Path, str]]:
    """Files and folders of the modules that the lab's exercises forbid, with the modules' names.

    Of a forbidden function of this package, the whole module; not modules of what every lab needs (torch, numpy).
    """
    found = []
    for name in sorted({one for exercise in lesson.exercises.values() for one in exercise.forbids}):
        top, *rest = name.split(".")
        spec = importlib.util.find_spec(top) if top not in ("torch", "numpy") else None
        place = Path(spec.origin) if spec and spec.origin else None
        if place is None or not place.exists():
            continue
        module, whole = top, place.parent if place.name == "__init__.py" else place
        for part in rest:
            inside = [whole / part, whole / f"{part}.py"]
            if not any(path.exists() for path in inside):
                break
            module, whole = f"{module}.{part}", next(path for path in inside if path.exists())
        if module not in _NEEDED and (module == name or top == PACKAGE.name):
            found.append((whole, module))
            found += [(whole.parent / "__pycache__", module)] if whole.suffix == ".py" else []
    return found


def _outermost(paths: Iterable[str]) -> list[str]:
    """The paths, sorted, without those that lie inside another."""
    kept: list[str] = []
    for path in sorted(set(map(os.path.abspath, paths))):
        if not _inside(path, kept):
            kept.append(path)
    return kept


def _inside(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of these, or inside one."""
    return any(path == one or path.startswith(one.rstrip("/") + "/") for one in folders)
