"""The commands, run as a learner runs them, on the fake course."""

from __future__ import annotations

import json

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
    assert output.index("cell 5, line 1: ModuleNotFoundError") < output.index("90.twice")


@pytest.mark.parametrize("arguments, words, code", [
    (("check", "77"), "there are: 90_fake", 2), (("check", "foo"), "there are: 90_fake", 2), (("check", "90_foo"), "there are: 90_fake", 2),
    (("check", "90.thrice"), "it has: twice, Total", 2), (("check", "--in", "nowhere"), "no folder nowhere", 1),
    (("check", "90", "--seed", "3"), "goes with --hidden", 2), (("open", "xx"), "there are: 90_fake", 2),
    (("reset", "twice"), "for example", 2), (("hint", "90.thrice"), "it has: twice, Total", 2),
    (("hint", "90.twice", "4"), "Invalid value for '1..3'", 2), (("hint", "90"), "write it like", 2)])
def test_a_mistyped_command_fails_with_one_line(arguments, words, code):
    result = llmcourse(*arguments)
    assert result.exit_code == code
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


def test_a_hint_is_printed_and_says_how_to_get_the_next_in_a_terminal():
    assert "comprehension" in llmcourse("hint", "90.twice", "3").output
    assert "There is more: llmcourse hint 90.twice 2" in llmcourse("hint", "90.twice").output


@pytest.mark.parametrize("asked", ["90", "90_fake", "fake"])
def test_a_lab_goes_by_its_number_and_its_name(course, asked):
    assert llmcourse("check", asked, "--in", str(course.root / "solutions")).exit_code == 0


def test_a_single_exercise_is_checked_alone(course):
    output = llmcourse("check", "90.Total", "--in", str(course.root / "solutions")).output
    assert "90.Total: 1 of 1" in output and "90.twice" not in output


def test_hidden_checks_run_on_inputs_that_a_seed_repeats(course, work):
    answered(course.exercise("90"), work / f"{NAME}.ipynb", twice="def twice(ns): return [n + n if n else 3 for n in ns]",
             Total="class Total:\n    s = 0\n    def add(self, n):\n        self.s += abs(n)\n        return self.s")
    assert "90.Total: 1 of 1" in llmcourse("check", "90.Total").output
    one, again, other = (llmcourse("check", "90.Total", "--hidden", "--seed", seed).output for seed in ("5", "5", "6"))
    assert "Negative numbers count too" in one or "It drops signs" in one
    assert one == again != other and "--hidden --seed 5" in one
    fresh = {llmcourse("check", "90.Total", "--hidden").output.splitlines()[0] for _ in range(4)}
    assert len(fresh) > 1


def test_an_answer_with_wrong_syntax_says_so_with_the_number_that_jupyter_shows(course, work):
    file = answered(course.exercise("90"), work / f"{NAME}.ipynb", twice="def twice(ns)\n    return ns")
    content = json.loads(file.read_text())
    next(c for c in content["cells"] if c["source"].__contains__("def twice(ns)"))["execution_count"] = 17
    file.write_text(json.dumps(content))
    output = llmcourse("check", "90").output
    assert "90.twice: your cell does not run" in output and "cell [17], line 1: SyntaxError" in output
    assert "90.twice: not written" not in output


@pytest.mark.parametrize("spoil", [lambda work: work.write_text("a file"), lambda work: (work.mkdir(), (work / f"{NAME}.ipynb.part").mkdir())])
def test_open_says_in_one_line_that_it_cannot_write(work, spoil):
    spoil(work)
    result = llmcourse("open", "90")
    assert result.exit_code == 1 and result.output.count("\n") == 1
    assert "cannot be written" in result.output and "LLMCOURSE_WORK" in result.output


def test_progress_says_which_folder_it_reads_and_when_there_is_none(work):
    assert f"Your labs in {work}, which is not there yet" in llmcourse("progress").output
    work.mkdir()
    assert llmcourse("progress").output.startswith(f"Your labs in {work}\n")
