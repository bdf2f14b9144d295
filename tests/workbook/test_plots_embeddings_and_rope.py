"""Lesson 02's figures: what they say in words is what was drawn. Oracle: angles and cosines worked out by hand."""

from __future__ import annotations

from math import cos, pi, sin

import pytest

from llmcourse.workbook import plots

PICTURES = {
    "cosines": lambda: plots.cosines([0.25, 0.5, 0.5, 0.75], {"king, queen": 0.62, "python, snake": 0.53}),
    "key_pairs": lambda: plots.key_pairs([1.0, 1.5, 4.0, 2.0], [0, 0, 5, 1], 700, 10_000.0),
    "layouts": lambda: plots.layouts({"interleaved": [0.0, 9.1, 34.5], "no rotation": [0.0, 1.1, 39.1]}),
    "looked_back": lambda: plots.looked_back({"none": [0.5, 0.25, 0.0], "RoPE": [1.0, 1.0, 0.75]}, taught=5, first=3),
    "neighbours": lambda: plots.neighbours(["␣king", "␣King", "␣queen"], [1.0, 0.82, 0.62], 0.44),
    "rope_dial": lambda: plots.rope_dial(20, theta=10_000.0, pair=0, head_dim=8),
    "turned": lambda: plots.turned((1.0, 0.0), (2.0, 0.0), [(0, 0), (7, 7), (3, 1)], speed=pi / 4),
    "wavelengths": lambda: plots.wavelengths(8, 10_000.0, 700),
}
SAID = {
    "cosines": "around 0.50, and above it lines for chosen pairs: king, queen 0.62",
    "key_pairs": "Of 6 heads all have their longest in pairs 2 to 3, 1 in one that never comes round",
    "looked_back": "RoPE: 100% right up to position 4, 75% beyond",
    "layouts": "interleaved: 0.0000 at position 0, 9.1", "neighbours": "␣King 0.82, ␣queen 0.62. A dotted line at 0.44",
    "rope_dial": f"{cos(20):+.2f} at distance 20", "turned": "q at 7, k at 7: 2.000; q at 3, k at 1: 0.000",
    "wavelengths": "1 of 4 pairs need more than the context, 700 tokens",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in PICTURES if name != "neighbours"])
def test_a_figures_axes_say_what_they_measure(name):
    axes = PICTURES[name]().figure.axes[-1]
    assert axes.get_title(loc="left") and axes.get_xlabel() and axes.get_ylabel()


@pytest.mark.parametrize("name, unit", [("layouts", "(tokens)"), ("rope_dial", "(tokens)")])
def test_a_measured_axis_has_its_unit(name, unit):
    assert unit in PICTURES[name]().figure.axes[-1].get_xlabel()


def test_a_hand_of_the_dial_stands_at_position_times_speed_counter_clockwise():
    clocks = plots.rope_dial(3, theta=10_000.0, head_dim=8).figure.axes[0]
    for i, hand in enumerate(clocks.lines):
        angle = 3 * 10_000.0 ** (-2 * i / 8)
        (x, tip_x), (y, tip_y) = hand.get_xdata(), hand.get_ydata()
        assert ((tip_x - x) / 0.38, (y - tip_y) / 0.38) == pytest.approx((cos(angle), sin(angle)))
    assert clocks.yaxis_inverted(), "up on the page is minus y"


def test_the_dials_curve_is_the_mean_of_the_waves_and_its_dot_lies_on_it():
    curve, _, dot = plots.rope_dial(9, theta=100.0, head_dim=4).figure.axes[1].lines
    assert curve.get_ydata()[9] == pytest.approx((cos(9) + cos(0.9)) / 2) == dot.get_ydata()[0]
    assert curve.get_ydata()[0] == 1


def test_pairs_that_never_come_round_have_another_shape_than_the_others():
    turns, never = PICTURES["wavelengths"]().figure.axes[0].lines[:2]
    assert turns.get_marker() != never.get_marker()
    assert [*turns.get_ydata(), *never.get_ydata()] == pytest.approx([2 * pi, 20 * pi, 200 * pi, 2_000 * pi])


def test_labels_of_near_pairs_stand_at_different_heights():
    labels = plots.cosines([0.1, 0.9], {"a": 0.5, "b": 0.5, "c": 0.51}).figure.axes[0].texts
    assert len({label.get_position()[1] for label in labels}) == 3
