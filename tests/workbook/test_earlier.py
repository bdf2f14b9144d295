"""`from_earlier_labs` on the fake course: whose code comes, in which order, and what the learner reads."""

from __future__ import annotations

import pytest

from llmcourse.errors import UnknownLesson
from llmcourse.workbook import from_earlier_labs
from tests.fake_course import NAME, answered

MINE = "def twice(numbers):\n    return [n + n for n in numbers]\ntwice.mine = True"
WRONG = "def twice(numbers):\n    return [3 * n for n in numbers]"


@pytest.fixture
def lab(course, tmp_path):
    """Writes the learner's lab with these answers; returns its folder."""

    def write(**answers):
        answered(course.exercise("90"), tmp_path / "labs" / f"{NAME}.ipynb", **answers)
        return tmp_path / "labs"

    return write


def test_an_answer_that_passes_its_checks_is_yours(lab, capsys):
    twice = from_earlier_labs("90.twice", folder=lab(twice=MINE))
    assert twice.mine and twice([4]) == [8]
    assert capsys.readouterr().out == "From earlier labs\n  ✓ 90.twice: yours\n"


def test_an_answer_that_fails_is_replaced_by_the_references_with_its_points(lab, capsys):
    twice = from_earlier_labs("90.twice", folder=lab(twice=WRONG))
    assert twice([4]) == [8]
    assert "  · 90.twice: the reference's (yours gets 0 of 3 points)\n" in capsys.readouterr().out


def test_an_answer_that_is_not_written_is_replaced_without_reproach(lab, capsys):
    assert from_earlier_labs("90.twice", folder=lab())([4]) == [8]
    assert "  · 90.twice: the reference's\n" in capsys.readouterr().out


def test_a_lab_that_is_not_there_counts_as_not_written(course, tmp_path, capsys):
    assert from_earlier_labs("90.twice", folder=tmp_path)([4]) == [8]
    assert "  · 90.twice: the reference's\n" in capsys.readouterr().out


def test_an_unreadable_notebook_is_said_and_the_references_pieces_come(lab, capsys):
    folder = lab()
    (folder / f"{NAME}.ipynb").write_text("{ no notebook", "utf-8")
    assert from_earlier_labs("90.twice", folder=folder)([4]) == [8]
    said = capsys.readouterr().out
    assert "90.twice: the reference's (" in said and "is not a notebook" in said


def test_several_pieces_come_in_the_order_asked_for_each_with_its_owner(lab, capsys):
    total, twice = from_earlier_labs("90.Total", "90.twice", folder=lab(twice=MINE))
    assert total().add(5) == 5 and twice.mine
    assert capsys.readouterr().out.splitlines()[1:] == ["  · 90.Total: the reference's", "  ✓ 90.twice: yours"]


def test_a_single_piece_is_no_tuple_and_several_are_one(lab):
    folder = lab(twice=MINE)
    assert callable(from_earlier_labs("90.twice", folder=folder))
    assert isinstance(from_earlier_labs("90.twice", "90.Total", folder=folder), tuple)


@pytest.mark.parametrize("name, said", [("90.thrice", "no exercise 'thrice'"), ("91.twice", "no lab '91'")])
def test_a_piece_that_no_lab_has_is_an_error_that_says_so(course, tmp_path, name, said):
    with pytest.raises(UnknownLesson, match=said):
        from_earlier_labs(name, folder=tmp_path)
