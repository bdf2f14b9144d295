"""Lesson 08's figures: what they say in words is what was drawn. Oracle: small numbers whose answers are plain to see."""

from __future__ import annotations

import warnings

import pytest
import torch
from matplotlib.colors import to_hex

from llmcourse.workbook import plots
from llmcourse.workbook.plots.smaller_cache import amount
from llmcourse.workbook.plots.style import COLOURS

STRIPED = torch.ones(4, 3) * torch.tensor([1.0, 1.0, 10.0])
PICTURES = {
    "keys_and_values": lambda: plots.keys_and_values(STRIPED, torch.ones(4, 3), layer=2, head=1),
    "rounded": lambda: plots.rounded(torch.tensor([0.0, 0.4, 1.0]), torch.tensor([0.0, 0.5, 1.0]), 4, "Keys", 2),
    "kept_token": lambda: plots.kept_token(["My", "name"], 1, [(0.001, 2.9), (0.77, 4.0)], False),
    "cache_quality": lambda: plots.cache_quality({"int8": (8.75, 0.0), "int4:token/64": (4.75, 6.9)}),
    "surprise_by_position": lambda: plots.surprise_by_position({"all": [0.0, 2.0], "window": [0.0, 4.0]}, bin=8, window=8),
    "sink_share": lambda: plots.sink_share([0.1, 0.7, 0.4]),
    "window_mask": lambda: plots.window_mask(tokens=10, window=4, sinks=2),
    "cache_memory": lambda: plots.cache_memory({"GQA": [5.37e8, 4.29e9], "int8": [2.85e8, 2.28e9]}, [4_096, 32_768], 8e10),
}
SAID = {
    "kept_token": "name: 77 %, 4.00 nats", "keys_and_values": "keys is 2.5 times as large as the mean one", "rounded": "largest error is 0.100",
    "cache_quality": "int4:token/64: 4.75 bits, +6.9 %", "surprise_by_position": "all 2.00; window 4.00",
    "sink_share": "The mean is 40 %, the most 70 % in layer 1",
    "window_mask": "sees 6 of 10: the first 2 and the newest 4; 4 are",
    "cache_memory": "GQA: 537 MB, 4.29 GB; int8: 285 MB, 2.28 GB",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in PICTURES if name != "cache_memory"])
def test_a_figures_axes_say_what_they_measure(name):
    axes = PICTURES[name]().figure.axes[0]
    assert axes.get_title(loc="left") and axes.get_xlabel() and axes.get_ylabel()


@pytest.mark.parametrize(
    "name, unit",
    [("cache_quality", "(%)"), ("sink_share", "(%)"), ("surprise_by_position", "(nats"), ("cache_memory", "bytes"), ("kept_token", "(%)")],
)
def test_a_measured_axis_has_its_unit(name, unit):
    axes = PICTURES[name]().figure.axes[0]
    assert unit in axes.get_xlabel() + axes.get_ylabel()


def test_the_window_s_squares_are_the_mask():
    """A row has the sinks, then what is forgotten, then its window, up to itself."""
    axes = PICTURES["window_mask"]().figure.axes[0]
    colours = {COLOURS[role]: role for role in ("prefill", "chosen", "other")}
    places = {(round(p.get_y() + 0.46), round(p.get_x() + 0.46)): p for p in axes.patches}
    seen = {place: colours[to_hex(square.get_facecolor()).upper()] for place, square in places.items()}
    assert len(seen) == 55
    assert [seen[9, j] for j in range(10)] == ["prefill"] * 2 + ["other"] * 4 + ["chosen"] * 4
    assert [seen[3, j] for j in range(4)] == ["prefill"] * 2 + ["chosen"] * 2


@pytest.mark.parametrize("bits", [2, 4])
def test_rounded_numbers_stand_among_the_marks_of_each_group(bits):
    """Two groups of two numbers: 2^bits marks each, from the smallest to the largest of the group."""
    true = torch.tensor([0.0, 3.0, 10.0, 40.0])
    axes = plots.rounded(true, true, bits, "Keys", group=2).figure.axes[0]
    marks = [sorted(segment[0][1] for segment in lines.get_segments()) for lines in axes.collections]
    assert [len(group) for group in marks] == [2**bits, 2**bits]
    assert [(group[0], group[-1]) for group in marks] == [(0, 3), (10, 40)]


def test_keys_and_values_share_one_scale():
    figure = PICTURES["keys_and_values"]().figure
    keys, values = (axes.images[0].get_clim() for axes in figure.axes[:2])
    assert keys == values == (-10, 10)


def test_lines_differ_without_colour_too():
    many = plots.surprise_by_position({name: [1.0, 2.0] for name in "abc"}, bin=8, window=8).figure.axes[0]
    assert len({(line.get_linestyle(), line.get_marker()) for line in many.lines[1:4]}) == 3


def test_the_controls_smallest_and_largest_values_draw_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for tokens, window, sinks in [(8, 1, 0), (32, 24, 6), (8, 24, 6)]:
            plots.window_mask(tokens, window, sinks).figure.canvas.draw()


@pytest.mark.parametrize("n_bytes, said", [(12, "12 B"), (5.37e8, "537 MB"), (4.29e9, "4.29 GB"), (1.2e12, "1.2 TB")])
def test_amounts_have_a_fitting_unit(n_bytes, said):
    assert amount(n_bytes) == said
