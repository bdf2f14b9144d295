"""A small course to grade: a lab without torch (tests/grade/lab) and one with it (tests/grade/lab_torch)."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from llmcourse.checks import Lesson
from llmcourse.grade.isolation import why_no_namespaces
from llmcourse.grade.limits import worker_uid
from llmcourse.grade.syscalls import PR_SET_CHILD_SUBREAPER, prctl
from llmcourse.grade.visible_files import files_for
from llmcourse.workbook.author import generate, write_notebook
from llmcourse.workbook.course import Course, course

LABS = {"01_small": "lab", "02_tensors": "lab_torch"}


@pytest.fixture(scope="session")
def small_course(tmp_path_factory) -> Course:
    """The course, built (not executed)."""
    root = tmp_path_factory.mktemp("course")
    ours = Course(root)
    (root / "checks").mkdir()
    for name, folder in LABS.items():
        source = Path(__file__).parent / folder
        shutil.copytree(source, root / "authoring" / name, ignore=shutil.ignore_patterns("checks.py", "__pycache__"))
        shutil.copy(source / "checks.py", root / "checks" / f"{name}.py")
        for kind, place in (("exercise", "exercises"), ("solution", "solutions")):
            write_notebook(root / place / f"{name}.ipynb", generate(ours, name, kind))
    return ours


@pytest.fixture
def in_small_course(small_course, monkeypatch) -> Course:
    """The same, as the course in use."""
    monkeypatch.setenv("LLMCOURSE_ROOT", str(small_course.root))
    return small_course


@pytest.fixture(scope="session")
def namespaces(tmp_path_factory) -> None:
    """Skips where this machine allows no namespace isolation, and says why."""
    trial = files_for(
        course(), Lesson("00", "", {}, ()), tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("root"), ()
    )
    why = why_no_namespaces(trial, worker_uid(0))
    if why:
        pytest.skip(f"no namespace isolation on this machine: {why}")


@pytest.fixture
def folder(namespaces):
    """A folder that any user can reach; orphans become this process's children, as they become the fork server's."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)
    prctl(PR_SET_CHILD_SUBREAPER, 0)
