"""Lesson 06's figures: what they say in words, their axes, and where points stand. Oracle: the numbers that were drawn."""

from __future__ import annotations

import pytest

from llmcourse.measure.roofline import Ceilings
from llmcourse.workbook import plots
from llmcourse.workbook.plots import style

ROOF = Ceilings(bytes_per_s=20e9, flops_per_s=150e9)
POINTS = [("n = 512", "prefill", 210.0, 120e9), ("R = 1", "decode", 0.5, 7e9)]
PICTURES = {
    "step_times": lambda: plots.step_times([1, 4, 512], [0.06, 0.062, 0.9], [0.027, 0.028, 0.8]),
    "roofline": lambda: plots.roofline(ROOF, POINTS),
    "throughput": lambda: plots.throughput({1: 15.0, 512: 640.0}, {1: (14.0, 0.07), 16: (140.0, 0.114)}),
    "step_bytes": lambda: plots.step_bytes([(64, 538e6, 3e6, 0.027, 0.061), (4000, 538e6, 184e6, 0.036, 0.08)]),
    "utilization": lambda: plots.utilization({"busy": {"prefill": 0.98, "decode": 0.96}, "MFU": {"prefill": 0.8, "decode": 0.05}}),
    "counted_against_measured": lambda: plots.counted_against_measured(
        [(0.03, 0.06, "decode"), (0.03, 0.09, "decode"), (0.03, 0.066, "decode"), (0.5, 0.8, "prefill")]),
}
SAID = {
    "step_times": "n = 4: 62 ms", "roofline": "R = 1 (decode) at 0.5 FLOP per byte reaches 7 GFLOP/s, 70% of the roof there",
    "throughput": "16 at once: 140, each with an ITL of 114 ms",
    "step_bytes": "4,000 tokens: 538 MB of weights and 184 MB of keys and values, counted 36.0 ms, measured 80.0 ms",
    "utilization": "MFU: prefill 80%, decode 5%",
    "counted_against_measured": "decode, 3 steps, from 60 to 90 ms: 2.2 times the least in the middle",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in PICTURES if name != "utilization"])
def test_every_axis_says_what_it_measures(name):
    for axes in PICTURES[name]().figure.axes:
        assert axes.get_title(loc="left") and axes.get_xlabel() and axes.get_ylabel()


@pytest.mark.parametrize("name, units", [
    ("step_times", ("(ms)",)), ("roofline", ("FLOP per byte", "GFLOP/s")), ("step_bytes", ("(MB)",)),
    ("utilization", ("(%)",)), ("counted_against_measured", ("(ms", "(ms")), ("throughput", ("tokens per second",)),
])  # fmt: skip
def test_a_measured_axis_has_its_unit(name, units):
    axes = PICTURES[name]().figure.axes[0]
    assert all(unit in axes.get_xlabel() + axes.get_ylabel() for unit in units)


def test_the_roof_bends_at_the_ridge_point():
    roof = plots.roofline(ROOF, POINTS).figure.axes[0].lines[0]
    (low, ridge, high), (start, peak, end) = roof.get_xdata(), roof.get_ydata()
    assert ridge == ROOF.ridge == 7.5 and peak == end == 150 and start == pytest.approx(low * 20)


def test_points_stand_inside_the_picture_wherever_they_are():
    for intensity, reached in [(0.01, 1e8), (1e5, 150e9), (7.5, 150e9)]:
        axes = plots.roofline(ROOF, [("x", "chosen", intensity, reached)]).figure.axes[0]
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        assert left < intensity < right and bottom < reached / 1e9 < top


def test_prefill_and_decode_have_marks_of_their_own_shape():
    axes = plots.roofline(ROOF, POINTS).figure.axes[0]
    marks = {line.get_label(): line.get_marker() for line in axes.lines if line.get_label() in ("prefill", "decode")}
    assert len(set(marks.values())) == 2


def test_logarithmic_axes_are_written_out_not_as_powers_of_ten():
    axes = PICTURES["counted_against_measured"]().figure.axes[0]
    axes.figure.canvas.draw()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert "100" in labels and not any("$" in label for label in labels)


def test_shares_above_one_hundred_percent_stay_in_the_picture():
    axes = plots.utilization({"MFU": {"prefill": 1.4, "decode": 0.1}}).figure.axes[0]
    assert axes.get_ylim()[1] > 140
