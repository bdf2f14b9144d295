"""The page that a student may see."""

from __future__ import annotations

import re

from llmcourse.grade.isolation import UNTRUSTED
from llmcourse.grade.report import page

TEST = {
    "id": "01.f/p",
    "exercise": "f",
    "hidden": False,
    "points": 0,
    "max": 2,
    "reason": "wrong values",
    "detail": "got <b>1</b>, want 2",
    "hint": "Count from 0.",
    "title": "counts from zero",
    "seconds": 0.1,
}


def result(**changes) -> dict:
    fields = dict(
        submission="ana",
        lesson="01",
        status="ok",
        reason="",
        score=0,
        max=2,
        previous=None,
        trusted=True,
        isolation="namespace",
        course_version="0.1.0",
        seconds=0.2,
        graded="2025-01-01",
        file="/home/teacher/secret/ana.ipynb",
        problems=[],
        warnings=[],
        exercises=[{"name": "f", "score": 0, "max": 2, "mistake": "It counts from one."}],
        tests=[TEST],
        seed=424242,
    )
    return {**fields, **changes}


def test_a_wrong_answer_is_shown_with_values_hint_and_known_mistake():
    shown = page(result())
    assert all(
        text in shown for text in ("counts from zero", "want 2", "Count from 0.", "It counts from one.", "0 of 2")
    )


def test_what_a_submission_said_cannot_become_markup():
    hostile = "<script>alert(1)</script>"
    shown = page(
        result(
            submission=hostile,
            reason=hostile,
            warnings=[hostile],
            problems=[{"cell": 1, "line": 1, "error": hostile, "message": hostile}],
            tests=[{**TEST, "detail": hostile}],
        )
    )
    assert "<script" not in shown and "<b>1" not in shown and "&lt;script&gt;" in shown


def test_neither_the_seed_nor_a_path_of_the_instructors_machine_is_shown():
    shown = page(result())
    assert "424242" not in shown and "/home/teacher" not in shown and "ana.ipynb" in shown


def test_an_untrusted_report_says_so():
    assert UNTRUSTED in page(result(trusted=False)) and UNTRUSTED not in page(result())


def test_the_score_before_is_shown_after_a_regrade():
    assert "before: 1 points (problems)" in page(result(previous={"score": 1, "status": "problems"}))


def test_cells_that_failed_come_before_the_exercises():
    shown = page(result(problems=[{"cell": 0, "line": 2, "error": "ImportError", "message": "m"}]))
    assert re.search(r"own import cell, line 2: ImportError.*<h2>f: 0 of 2", shown, re.DOTALL)


def test_the_page_needs_nothing_from_elsewhere():
    assert not re.search(r"https?://|src=|<link", page(result()))
