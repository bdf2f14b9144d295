"""`explore`: the static picture with its text, the controls, and both in a real kernel."""

from __future__ import annotations

import base64

import pytest

from llmcourse.errors import CourseError
from llmcourse.workbook import explore
from llmcourse.workbook.exploring import _again, _control, picture
from llmcourse.workbook.running import WIDGET, run_notebook

PNG = b"\x89PNG\r\n\x1a\n"
CELL = """from matplotlib.figure import Figure
from llmcourse.workbook import explore
def draw(power, grid):
    figure = Figure()
    axes = figure.subplots()
    axes.set(title="Powers", xlabel="x", ylabel="y")
    axes.plot([x ** power for x in range(5)])
    return figure
explore(draw, power=(1, 4), grid=True)
"""


def draw(power=2, color="red"):
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.set(title="Powers", xlabel="x (m)", ylabel="y (s)")
    axes.plot([x**power for x in range(5)], color=color)
    return figure


def test_the_picture_is_a_png_whose_text_says_what_and_for_which_values():
    data, metadata = picture(draw, {"power": 3, "color": "red"})
    assert data["image/png"].startswith(PNG)
    assert data["text/plain"] == "Picture: Powers; y (s) against x (m) (power = 3, color = red)"
    assert metadata["image/png"]["alt"] == data["text/plain"]


def test_a_drawing_may_say_in_its_own_words_what_it_shows():
    data, _ = picture(lambda power: (draw(power), "A curve that rises."), {"power": 3})
    assert data["text/plain"] == "A curve that rises. (power = 3)"


def test_the_same_values_give_the_same_picture_and_others_another():
    first, second, other = (picture(draw, {"power": p})[0]["image/png"] for p in (2, 2, 3))
    assert first == second != other


@pytest.mark.parametrize("given, kind, value", [
    ((0, 29), "whole", 0), ((0, 29, 7), "whole", 7), ((0.0, 1.0), "real", 0.0), ((1_024, 1_048_576), "choice", 1_024),
    ([16, 8, 4], "choice", 16), (["a", "b"], "choice", "a"), (True, "tick", True), ("a text", "text", "a text"),
])
def test_each_control_has_its_kind_and_its_default(given, kind, value):
    control = _control("c", given)
    assert (control["kind"], control["value"]) == (kind, value)


def test_a_wide_range_goes_by_doubling_between_its_ends():
    assert _control("c", (1_000, 100_000))["options"] == [1000, 2000, 4000, 8000, 16000, 32000, 64000, 100000]


@pytest.mark.parametrize("given", [(), (1,), (2, 1), [], {}, 3, None])
def test_what_is_no_control_is_an_error_that_names_it(given):
    with pytest.raises(CourseError, match="power="):
        explore(draw, power=given)


def test_a_drawing_that_returns_no_figure_is_an_error():
    with pytest.raises(CourseError, match="needs a figure"):
        picture(lambda: 3, {})


def test_without_a_kernel_the_text_is_printed(capsys):
    explore(draw, power=(1, 4))
    assert capsys.readouterr().out == "Picture: Powers; y (s) against x (m) (power = 1)\n"


def test_a_drawing_that_fails_for_moved_controls_says_so():
    assert _again(draw, {"power": "x"})[0]["text/plain"].startswith("No picture for {'power': 'x'}: TypeError")


def test_a_stored_notebook_keeps_picture_and_words_and_no_widget(built):
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": CELL, "outputs": [], "execution_count": None}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    shown, words, controls = run_notebook(notebook, built.root / "notebooks" / "x.ipynb", built.root)["cells"][0]["outputs"]
    assert base64.b64decode(shown["data"]["image/png"]).startswith(PNG)
    assert shown["metadata"]["image/png"]["alt"] == "Picture: Powers; y against x (power = 1, grid = True)"
    assert words["data"]["text/plain"] == shown["data"]["text/plain"] and "<details>" in words["data"]["text/html"]
    assert controls["data"] == {"text/plain": "Run this cell to move: power, grid."}
    assert WIDGET not in controls["data"]
