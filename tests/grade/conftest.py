"""A small course with one lab (tests/grade/lab) to grade, and how submissions to it are made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from llmcourse.workbook.author import generate, write_notebook
from llmcourse.workbook.course import Course

NAME = "01_small"


@pytest.fixture(scope="session")
def small_course(tmp_path_factory) -> Course:
    """The course, built (not executed)."""
    root, source = tmp_path_factory.mktemp("course"), Path(__file__).parent / "lab"
    for part in ("lab", "lesson", "wrong"):
        (root / "authoring" / NAME).mkdir(parents=True, exist_ok=True)
        shutil.copy(source / f"{part}.py", root / "authoring" / NAME)
    (root / "checks").mkdir()
    shutil.copy(source / "checks.py", root / "checks" / f"{NAME}.py")
    ours = Course(root)
    for kind, folder in (("exercise", "exercises"), ("solution", "solutions")):
        write_notebook(root / folder / f"{NAME}.ipynb", generate(ours, NAME, kind))
    return ours


@pytest.fixture
def in_small_course(small_course, monkeypatch) -> Course:
    """The same, as the course in use."""
    monkeypatch.setenv("LLMCOURSE_ROOT", str(small_course.root))
    return small_course
