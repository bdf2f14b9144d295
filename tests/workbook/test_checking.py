"""`check`, `hint` and whole notebooks, on the fake course. Oracle: the words that a learner should read."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from llmcourse import given
from llmcourse.checks import Answer
from llmcourse.errors import AuthoringError, UnknownLesson
from llmcourse.workbook import check, hint
from llmcourse.workbook.checking import check_lab
from llmcourse.workbook.course import split_exercise
from llmcourse.workbook.examine import examine
from llmcourse.workbook.report import PASSED, Report
from tests.fake_course import NAME, answered

pytestmark = pytest.mark.usefixtures("course")


def said(capsys, exercise: str, **answers) -> str:
    check(exercise, **answers)
    return capsys.readouterr().out


def unwritten(numbers):
    raise NotImplementedError


def endless(numbers):
    while True:
        pass


def shouts(numbers):
    print("\n".join(map(str, range(30))))
    return []


def test_a_right_answer_passes_and_is_told_that_grading_does_more(capsys):
    assert said(capsys, "90.twice", twice=lambda ns: [n + n for n in ns]) == (
        "90.twice: 3 of 3 points\n  ✓ doubles each number (2 points)\n  ✓ input stays (1 point)\n" + PASSED + "\n")


def test_an_untouched_answer_is_not_written_yet(capsys):
    assert said(capsys, "90.twice", twice=unwritten) == "90.twice: not written yet\n3 points wait here.\n"


def test_a_wrong_answer_gets_the_difference_and_the_hint(capsys):
    text = said(capsys, "90.twice", twice=lambda ns: [3 * n for n in ns])
    assert re.search(r"✗ doubles each number \(2 points\): wrong values: at result\[0\]: got -?\d+, want -?\d+\n", text)
    assert "      Hint: The result doubles each number" in text and "known mistake" not in text


def test_a_known_mistake_is_recognised_by_its_results(capsys):
    text = said(capsys, "90.twice", twice=lambda ns: ns + ns)
    assert "This looks like a known mistake: It repeats the list instead of doubling each number." in text
    assert text.index("known mistake") < text.index("✗")


def test_of_a_known_mistake_only_its_own_hint_is_shown(capsys):
    class Shared:
        sums = []

        def add(self, number):
            self.sums.append(number)
            return sum(self.sums)

    assert said(capsys, "90.Total", Total=Shared).count("Hint: Every object keeps a sum of its own") == 1
    text = said(capsys, "90.twice", twice=lambda ns: [n + 2 for n in ns])
    assert text.count("Hint:") <= 1


def test_a_mistake_made_by_editing_the_reference_is_recognised_too(capsys):
    text = said(capsys, "90.twice", twice=lambda ns: [n + 2 for n in ns])
    assert "known mistake: It adds two instead of multiplying by two." in text


def test_an_endless_loop_is_waited_for_once(capsys, course, monkeypatch):
    lesson = course.lesson("90")
    from dataclasses import replace

    quick = replace(lesson, probes=tuple(replace(p, seconds=0.2) for p in lesson.probes))
    result = examine(quick, "twice", Answer({"twice": endless}), given.answer("90"))
    assert [v.reason for v in result.verdicts] == ["timeout", "not run"]


def test_what_the_answer_prints_is_shown_in_part_where_it_is_wrong(capsys):
    text = said(capsys, "90.twice", twice=shouts)
    assert "Your code printed:\n      0\n      1\n" in text and "(50 more lines)" in text


def test_handing_in_the_given_piece_is_forbidden(capsys):
    assert "may not call llmcourse.given.lesson_90" in said(capsys, "90.twice", twice=given.twice)


@pytest.mark.parametrize("exercise, answers, words", [
    ("90.twice", {}, "pass the answer along: check('90.twice', twice=twice)"),
    ("90.thrice", {}, "it has: twice, Total"),
    ("77.twice", {}, "there are: 90_fake"),
    ("twice", {}, "for example '01.merge_pair'"),
    (None, {}, "not an exercise"),
])
def test_a_check_called_wrongly_says_how_to_call_it_and_never_raises(capsys, exercise, answers, words):
    assert words in said(capsys, exercise, **answers)


def test_a_failure_of_the_course_itself_is_one_line_and_no_traceback(capsys, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("out of cheese")

    monkeypatch.setattr("llmcourse.workbook.checking.examine_answer", broken)
    text = said(capsys, "90.twice", twice=unwritten)
    assert "the course's own check failed (RuntimeError: out of cheese)" in text and text.count("\n") == 1


@pytest.mark.parametrize("level, words", [(1, "What happens to one number?"), (2, "2 times the i-th"), (3, "comprehension"),
                                          (4, "levels 1 to 3"), ("1", "levels 1 to 3")])
def test_hints_come_in_three_levels(capsys, level, words):
    hint("90.twice", level)
    assert words in capsys.readouterr().out


def test_an_exercise_without_probes_is_an_error(course):
    from dataclasses import replace

    empty = replace(course.lesson("90"), probes=())
    with pytest.raises(AuthoringError, match="no probes"):
        examine(empty, "twice", Answer({"twice": unwritten}), given.answer("90"))


def test_the_report_for_a_notebook_escapes_what_the_answer_returned():
    page = Report("t", (("✗", "got '<script>'", ("Hint: a < b",)),)).html()
    assert "<script>" not in page and "&lt;script&gt;" in page and "a &lt; b" in page


@pytest.mark.parametrize("text", ["01", "1.f", "01.", "01.f.g", ".f", "01.a b"])
def test_an_exercise_is_written_as_lesson_and_name(text):
    with pytest.raises(UnknownLesson):
        split_exercise(text)


def test_a_whole_notebook_is_checked_and_a_missing_one_counts_as_unwritten(course, tmp_path):
    answered(course.exercise("90"), tmp_path / f"{NAME}.ipynb", twice="def twice(ns):\n    return [n + n for n in ns]")
    checked = check_lab(course, "90", tmp_path)
    assert [(one.exercise, one.points, one.unwritten) for one in checked.exercises] == [("twice", 3, False), ("Total", 0, True)]
    missing = check_lab(course, "90", tmp_path / "nowhere")
    assert missing.path is None and all(one.unwritten for one in missing.exercises)


def test_a_renamed_notebook_is_found_by_its_mark(course, tmp_path):
    answered(course.exercise("90"), tmp_path / "Résumé 终版.ipynb")
    assert check_lab(course, "90", tmp_path).path == tmp_path / "Résumé 终版.ipynb"


def test_given_pieces_come_from_the_solutions_and_unknown_ones_are_no_attributes():
    assert given.twice([4]) == [8]
    with pytest.raises(AttributeError, match="thrice"):
        given.thrice


def test_importing_the_workbook_loads_no_torch_and_no_widgets():
    code = "import sys, llmcourse.workbook; from llmcourse.workbook import check, explore, predict\n" \
           "assert not {'torch', 'IPython', 'ipywidgets', 'matplotlib', 'jupytext', 'nbformat'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": "."}).returncode == 0
