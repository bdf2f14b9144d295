"""Predictions: what is shown, and what is kept. Oracle: typed by hand."""

from __future__ import annotations

import pytest

from llmcourse.workbook import measured, predict
from llmcourse.workbook.predicting import FILE, predictions

pytestmark = pytest.mark.usefixtures("course")


@pytest.mark.parametrize("guess, value, words", [
    (20, 10, "speed-up: predicted 20 ×, measured 10 ×: 2.00 times too high"),
    (5, 10, "speed-up: predicted 5 ×, measured 10 ×: 2.00 times too low"),
    (10, 10, "speed-up: predicted 10 ×, measured 10 ×: exactly"),
    (0, 3, "speed-up: predicted 0 ×, measured 3 ×: 3 × apart"),
    (-2, 3, "speed-up: predicted -2 ×, measured 3 ×: 5 × apart"),
    (-4, -2, "speed-up: predicted -4 ×, measured -2 ×: 2.00 times too high"),
])
def test_a_measured_value_is_set_beside_the_prediction(capsys, guess, value, words):
    predict("speed-up", guess, "×")
    capsys.readouterr()
    measured("speed-up", value)
    assert capsys.readouterr().out == words + "\n"


@pytest.mark.parametrize("nothing", [(), (None,), (...,), (..., "×")])
def test_a_page_says_so_until_the_reader_wrote_a_number(capsys, nothing):
    predict("speed-up", *nothing)
    assert "none yet; write your number" in capsys.readouterr().out
    measured("speed-up", 3)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("speed-up: no prediction, measured 3") and second.startswith("You wrote none.")
    predict("speed-up", 2, "×")
    measured("speed-up", 3)
    assert "none" not in capsys.readouterr().out


def test_the_dots_of_a_fresh_page_do_not_erase_what_the_reader_wrote_before(capsys):
    predict("speed-up", 20, "×")
    predict("speed-up", ..., "×")
    measured("speed-up", 10)
    assert "predicted 20 ×, measured 10 ×: 2.00 times too high" in capsys.readouterr().out


def test_predictions_are_kept_in_order_and_a_new_guess_keeps_the_measurement(work):
    predict("a", 1, "s")
    predict("b", 2)
    measured("a", 3)
    predict("a", 4, "s")
    assert [str(p) for p in predictions(work).values()] == ["a: predicted 4 s, measured 3 s: 1.33 times too high",
                                                            "b: predicted 2, not measured yet"]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 3}', '{"a": {"odd": 1}}'])
def test_a_damaged_file_of_predictions_stops_nobody(work, content, capsys):
    work.mkdir()
    (work / FILE).write_text(content)
    measured("a", 3)
    assert predictions(work)["a"].measured == 3


def test_a_work_folder_that_cannot_be_written_is_said_and_stops_nobody(work, capsys):
    work.write_text("a file where the folder should be")
    predict("a", 3)
    assert "you say 3" in (said := capsys.readouterr().out) and "It is not kept for later" in said
