"""Figures of lesson 04: they say in words what they show, and their axes what they measure. Oracle: the drawn numbers."""

from __future__ import annotations

import pytest

from llmcourse.workbook import plots

PICTURES = {
    "activations": lambda: plots.activations([-1.0, 0.0, 4.0], {"silu": [-0.25, 0.0, 3.9], "ReLU": [0.0, 0.0, 4.0]}),
    "answer_forming": lambda: plots.answer_forming({"sun … ␣west": [2079, 40, 1, 2, 1], "hot …": [3, 1, 1]}, vocabulary=49_152),
    "logit_lens": lambda: plots.logit_lens(["The", "␣sun"], [0, 3], [["The", "␣sun"], [",", "␣sets"]],
                                           [[1.0, 0.9], [0.3, 0.45]]),
    "model_map": lambda: plots.model_map("Tiny", {"embedding table": 30, "feed-forward": 70, "output head": 0},
                                         {"looking back": 1_000, "feed-forward": 3_000}, 64),
    "stream_writes": lambda: plots.stream_writes({"The": ([1.0, 1.0], [1.0, 2.0], [1.0, 2.0, 3.0]),
                                                 "␣sun": ([2.0, 8.0], [4.0, 500.0], [1.0, 5.0, 400.0])}),
    "without_a_layer": lambda: plots.without_a_layer([9.5, 3.25, 4.0], 3.0),
}
SAID = {
    "activations": "silu falls to -0.25 at -1.00",
    "answer_forming": "␣west: rank 2,079 at first, 1 after 2 layers, first from layer 4 on",
    "logit_lens": "after 0: ␣sun 90%, after 3: ␣sets 45%",
    "model_map": "feed-forward 70.0%. Of 4,000 operations for a token after 64 others: looking back 25.0%",
    "stream_writes": "The largest write is 500, by feed-forward in layer 1",
    "without_a_layer": "Most needed is layer 0 (9.50 without it), least layer 1 (3.25)",
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_figures_axes_say_what_they_measure(name):
    axes = PICTURES[name]().figure.axes[0]
    assert axes.get_title(loc="left") and axes.get_xlabel() and (axes.get_ylabel() or name == "model_map")


@pytest.mark.parametrize("name, unit", [("model_map", "(%)"), ("without_a_layer", "(nats")])
def test_a_measured_axis_has_its_unit(name, unit):
    axes = PICTURES[name]().figure.axes[0]
    assert unit in axes.get_xlabel() + axes.get_ylabel()


def test_the_parts_of_a_map_fill_both_bars():
    axes = PICTURES["model_map"]().figure.axes[0]
    for row in (0, 1):
        bars = [bar for bar in axes.patches if abs(bar.get_y() + bar.get_height() / 2 - row) < 0.01]
        assert sum(bar.get_width() for bar in bars) == pytest.approx(100)
