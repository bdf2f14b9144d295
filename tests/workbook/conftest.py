"""The fake course, built once for a session; each test may use it, or a copy of it that it may change."""

from __future__ import annotations

import shutil

import pytest

from llmcourse.workbook import author
from llmcourse.workbook.course import Course
from tests import fake_course


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Course:
    """The fake course with its notebooks; never change it."""
    course = fake_course.write(tmp_path_factory.mktemp("course"))
    author.build(root=course.root)
    return course


@pytest.fixture
def course(built, monkeypatch, tmp_path) -> Course:
    """The built course as the one in use, with an empty work folder."""
    monkeypatch.setenv("LLMCOURSE_ROOT", str(built.root))
    monkeypatch.setenv("LLMCOURSE_WORK", str(tmp_path / "work"))
    return built


@pytest.fixture
def own_course(built, monkeypatch, tmp_path) -> Course:
    """A copy of the built course that a test may change."""
    root = tmp_path / "course"
    shutil.copytree(built.root, root)
    monkeypatch.setenv("LLMCOURSE_ROOT", str(root))
    monkeypatch.setenv("LLMCOURSE_WORK", str(tmp_path / "work"))
    return Course(root)


@pytest.fixture
def work(tmp_path):
    """The learner's folder."""
    return tmp_path / "work"
