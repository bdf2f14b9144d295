"""The commands, run as a learner runs them, on the fake course."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from llmcourse.cli.app import app
from llmcourse.workbook import predict
from tests.fake_course import NAME, answered

pytestmark = pytest.mark.usefixtures("course")


def llmcourse(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_untouched_labs_are_not_written_yet_and_the_exit_code_is_one(course):
    result = llmcourse("check", "--in", str(course.root / "exercises"))
    assert result.exit_code == 1
    assert result.output.count("not written yet") == 2


def test_solved_labs_are_complete_and_the_exit_code_is_zero(course):
    result = llmcourse("check", "90", "--in", str(course.root / "solutions"))
    assert result.exit_code == 0, result.output


def test_a_check_looks_into_the_work_folder_and_says_when_a_lab_is_not_there():
    result = llmcourse("check", "90")
    assert result.exit_code == 1 and "open it with: llmcourse open 90" in result.output


def test_a_cell_that_fails_is_named_before_the_results(course, work):
    answered(course.exercise("90"), work / f"{NAME}.ipynb", twice="import no_such_module\ndef twice(ns): return ns")
    output = llmcourse("check", "90").output
    assert output.index("cell 4, line 1: ModuleNotFoundError") < output.index("90.twice")


@pytest.mark.parametrize("arguments, words", [(("check", "77"), "there are: 90_fake"), (("check", "--in", "nowhere"), "no folder nowhere"),
                                              (("open", "xx"), "there are: 90_fake"), (("reset", "twice"), "for example")])
def test_a_mistyped_command_fails_with_one_line(arguments, words):
    result = llmcourse(*arguments)
    assert result.exit_code == 1
    assert words in result.output and result.output.count("\n") == 1


def test_open_makes_a_copy_and_reset_keeps_the_answer(course, work):
    assert "your copy is ready" in llmcourse("open").output
    answered(course.exercise("90"), work / f"{NAME}.ipynb", twice="def twice(ns): return ns")
    assert "up to date" in llmcourse("open", "90").output
    assert "90.twice-1.py" in llmcourse("reset", "90.twice").output


def test_progress_shows_exercises_points_unlocks_what_is_next_and_predictions(course, work):
    answered(course.exercise("90"), work / f"{NAME}.ipynb", twice="def twice(ns): return [n + n for n in ns]")
    predict("a guess", 3, "s")
    output = llmcourse("progress").output
    assert "90 fake                     1 of 2 exercises   3 of 4 points" in output
    assert "✓ twice" in output and "unlocks: nothing in the engine" in output
    assert "Next: 90.Total (90.2 A running total), difficulty 2 of 5, 5 minutes" in output
    assert "a guess: predicted 3 s, not measured yet" in output


def test_author_check_is_silent_and_zero_when_all_is_well_and_one_line_and_one_otherwise(own_course):
    result = llmcourse("author", "build", "--check")
    assert (result.exit_code, result.output) == (0, "")
    (own_course.root / "notebooks" / f"{NAME}.ipynb").unlink()
    result = llmcourse("author", "build", "--check")
    assert (result.exit_code, result.output.count("\n")) == (1, 1)


def test_a_hint_is_printed():
    assert "comprehension" in llmcourse("hint", "90.twice", "3").output
