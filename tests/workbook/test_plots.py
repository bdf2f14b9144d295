"""The course's figures: one style, readable without colour, each with its words.

Oracles: the numbers that were drawn; the relative luminance of WCAG 2 for how a colour prints in grey.
"""

from __future__ import annotations

import importlib
import warnings
from itertools import combinations
from pathlib import Path

import matplotlib
import pytest
from matplotlib.colors import to_rgb

from llmcourse.workbook import plots
from llmcourse.workbook.plots import tints
from llmcourse.workbook.plots.style import COLOURS, HATCHES, Picture, drawable, shortened
from llmcourse.workbook.running import run_notebook

APART = 0.08
PICTURES = {
    "candidates": lambda: plots.candidates([[("␣Paris", 0.77), ("␣the", 0.06)], [(".", 0.6), (",", 0.2)]]),
    "next_token": lambda: plots.next_token(["␣Paris", "␣the"], [0.77, 0.06]),
    "vectors": lambda: plots.vectors([[0.25, -0.5, 0.125], [1.0, 0.0, 0.5]], ["The", "␣cat"]),
    "waits": lambda: plots.waits(["The", "␣cat", "."], [0.5, 0.04, 0.03]),
    "bytes_per_token": lambda: plots.bytes_per_token([256, 512], [1.0, 2.25], {"SmolLM2": (49_152, 5.25)}),
    "token_lengths": lambda: plots.token_lengths([1, 3, 3, 3, 25]),
    "languages": lambda: plots.languages({"English": 11, "Greek": 49}, {"English": "Latin", "Greek": "Greek"}),
    "reading_time": lambda: plots.reading_time({"English": 11, "Greek": 49}, {"English": 0.02, "Greek": 0.08}, ["Greek"]),
    "merges": lambda: plots.merges({"ban": 5, "banana": 4}, 2),
}
SAID = {
    "candidates": "␣Paris 77%", "next_token": "␣Paris 77.0 %", "vectors": "+0.25, -0.50", "waits": "500 ms",
    "bytes_per_token": "2.25 at 512", "token_lengths": "3 bytes", "languages": "English 11, Greek 49",
    "reading_time": "Greek 49 tokens 80 ms", "merges": "a + n  (13×): b|an b|an|an|a",
}  # fmt: skip


def luminance(colour: str) -> float:
    """Relative luminance, 0 (black) to 1 (white)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


LESSONS = {file.stem.removeprefix("test_plots_"): importlib.import_module(f"tests.workbook.{file.stem}")
           for file in sorted(Path(__file__).parent.glob("test_plots_*.py"))}  # fmt: skip
ALL = {**PICTURES, **{name: draw for lesson in LESSONS.values() for name, draw in lesson.PICTURES.items()}}
ALL_SAID = {**SAID, **{name: said for lesson in LESSONS.values() for name, said in lesson.SAID.items()}}


def test_every_figure_of_the_course_is_tested_here_or_in_its_lessons_own_file():
    own = {name for lesson, names in plots._FIGURES.items() if lesson not in LESSONS for name in names}
    assert set(PICTURES) == set(SAID) == own and set(ALL) == set(plots.__all__)
    for name, lesson in LESSONS.items():
        assert set(lesson.PICTURES) == set(lesson.SAID) == set(plots._FIGURES[name])


@pytest.mark.parametrize("name", ALL)
def test_a_figure_draws_and_says_in_words_what_it_shows(name):
    picture = ALL[name]()
    assert isinstance(picture, Picture) and ALL_SAID[name] in picture.text
    picture.figure.canvas.draw()


@pytest.mark.parametrize("name", [name for name in PICTURES if name not in ("vectors", "merges", "next_token", "languages")])
def test_a_figures_axes_say_what_they_measure(name):
    axes = PICTURES[name]().figure.axes[0]
    assert axes.get_title(loc="left") and axes.get_xlabel() and axes.get_ylabel()


@pytest.mark.parametrize("name, unit", [("waits", "(ms)"), ("reading_time", "(ms)"), ("next_token", "(%)")])
def test_a_measured_axis_has_its_unit(name, unit):
    axes = PICTURES[name]().figure.axes[0]
    assert unit in axes.get_xlabel() + axes.get_ylabel()


def test_colours_differ_in_grey_too_by_lightness_or_hatching():
    for one, other in combinations(COLOURS, 2):
        apart = abs(luminance(COLOURS[one]) - luminance(COLOURS[other]))
        assert apart > APART or HATCHES.get(one) != HATCHES.get(other), f"{one} and {other} look alike in grey"


def test_letters_stand_out_on_every_tint():
    assert all((luminance(tint) + 0.05) / (luminance(tints.INK) + 0.05) > 7 for tint in tints.TINTS)


def test_drawing_leaves_matplotlibs_settings_as_they_were():
    before = dict(matplotlib.rcParams)
    PICTURES["waits"]()
    assert dict(matplotlib.rcParams) == before


def test_a_figure_looks_the_same_whatever_matplotlib_was_told():
    with matplotlib.rc_context({"axes.spines.top": True, "font.size": 30}):
        axes = PICTURES["waits"]().figure.axes[0]
    assert not axes.spines["top"].get_visible() and axes.xaxis.label.get_size() == 10


def test_tokens_in_scripts_that_the_font_lacks_draw_without_warning():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        plots.waits(["日本", "🙂", "မေ"], [0.5, 0.04, 0.03]).figure.canvas.draw()
    assert [str(one.message) for one in seen] == []


def test_missing_characters_leave_a_mark_in_their_place():
    assert drawable("a日b🙂é␣") == "a▯b▯é␣"


def test_long_labels_are_shortened():
    assert [shortened("x" * n, 5) for n in (4, 5, 6)] == ["xxxx", "xxxxx", "xxxx…"]


def test_a_single_token_has_a_first_wait_and_no_gaps():
    picture = plots.waits(["The"], [0.25])
    assert picture.text == "One bar: the first token came after 250 ms."


def test_two_pictures_can_share_a_scale():
    tall, low = plots.waits(["a", "b"], [0.9, 0.1]), plots.waits(["a", "b"], [0.3, 0.1], up_to=0.9)
    assert tall.figure.axes[0].get_ylim() == low.figure.axes[0].get_ylim()


def test_a_figure_at_the_end_of_a_cell_shows_and_its_words_are_folded_below(tmp_path):
    source = "from llmcourse.workbook import plots\nplots.waits(['The', '.'], [0.5, 0.04])"
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
    notebook = {"cells": [cell], "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
                "nbformat": 4, "nbformat_minor": 5}
    shown, words = run_notebook(notebook, tmp_path / "figure.ipynb", tmp_path)["cells"][0]["outputs"]
    assert "image/png" in shown["data"] and "500 ms" in shown["metadata"]["image/png"]["alt"]
    assert "<details>" in words["data"]["text/html"] and "500 ms" in words["data"]["text/html"]
