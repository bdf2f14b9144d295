"""Lesson 03's figures: what they say in words is what was drawn. Oracle: small weights whose answers are plain to see."""

from __future__ import annotations

import pytest
import torch

from llmcourse.workbook import plots
from llmcourse.workbook.plots.style import COLOURS

TOKENS = ["Anna", "␣met", "␣Bruno"]
PREVIOUS = torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.1, 0.7, 0.2]])
FIRST = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
WALL = torch.stack([torch.stack([PREVIOUS, PREVIOUS]), torch.stack([FIRST, FIRST])])  # two layers, two heads
GRID = torch.tensor([[0.1, 0.2], [0.3, 0.8], [0.0, 0.4]])  # three layers, two heads
SORTED = {"not divided": [0.1, 0.85, 0.05, 0.0], "by 24": [0.25, 0.3, 0.25, 0.2]}
PICTURES = {
    "attention_map": lambda: plots.attention_map(PREVIOUS, TOKENS),
    "all_heads": lambda: plots.all_heads(WALL),
    "head_scores": lambda: plots.head_scores({"Weight on the token before": GRID, "Weight on the first token": 1 - GRID}),
    "sorted_weights": lambda: plots.sorted_weights(SORTED),
    "repeated_loss": lambda: plots.repeated_loss([12.0, 10.0, 14.0, 2.0, 1.0], half=3, blind=10.5),
    "entropies": lambda: plots.entropies({"none": [0.5, 0.1], "by 8": [3.0, 2.0], "by 24": [6.0, 6.5]}, most=7.0),
    "shared_heads": lambda: plots.shared_heads(6, {"GQA": 2}),
    "score_memory": lambda: plots.score_memory([512, 1024], [9e6, 36e6], [1e6, 2e6], 64),
}
SAID = {
    "attention_map": "␣met at Anna 0.90; ␣Bruno at ␣met 0.70", "all_heads": "50% of the weight in layer 0, 100% in layer 1",
    "head_scores": "Weight on the token before: most in layer 1, head 1, 0.80; mean 0.30", "sorted_weights": "not divided: the largest 85 %, the next 10 %",
    "repeated_loss": "12.0 nats on average, then 1.5",
    "entropies": "by 8 2.50", "shared_heads": "GQA: 3 query heads read each of 2", "score_memory": "36 MB",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in PICTURES if name != "shared_heads"])
def test_a_figures_axes_say_what_they_measure(name):
    for axes in PICTURES[name]().figure.axes[:1]:
        assert axes.get_title(loc="left") and axes.get_xlabel() and axes.get_ylabel()


@pytest.mark.parametrize("name, unit", [("entropies", "(bits)"), ("score_memory", "(MB"), ("sorted_weights", "(%)"), ("repeated_loss", "(nats)")])
def test_a_measured_axis_has_its_unit(name, unit):
    assert unit in PICTURES[name]().figure.axes[0].get_ylabel()


def test_a_map_has_a_row_for_each_token_that_looks_and_its_weights_written_in():
    axes = PICTURES["attention_map"]().figure.axes[0]
    for labels in (axes.get_yticklabels(), axes.get_xticklabels()):
        assert [label.get_text() for label in labels] == TOKENS
    assert [text.get_text() for text in axes.texts][3:6] == ["0.90", "0.10", "0.00"]


def test_a_map_of_many_tokens_has_no_numbers_in_it():
    assert len(plots.attention_map(torch.eye(9), list("abcdefghi")).figure.axes[0].texts) == 0


def test_the_wall_has_each_heads_map_in_its_place():
    picture = plots.all_heads(WALL).figure.axes[0].images[0].get_array()
    assert picture.shape == (2 * 4, 2 * 4)  # three rows and a gap for each
    assert torch.equal(torch.as_tensor(picture.filled(0)[:3, 4:7]), FIRST)
    assert torch.equal(torch.as_tensor(picture.filled(0)[4:7, :3]), PREVIOUS)


def test_the_head_with_the_largest_score_is_framed():
    frame, = PICTURES["head_scores"]().figure.axes[0].patches
    assert frame.get_xy() == (0.5, 0.5) and frame.get_edgecolor()[:3] == pytest.approx(
        [int(COLOURS["chosen"][i : i + 2], 16) / 255 for i in (1, 3, 5)])


def test_sorted_weights_fall_from_left_to_right():
    bars = PICTURES["sorted_weights"]().figure.axes[0].patches
    assert [bar.get_height() for bar in bars] == pytest.approx([85, 10, 5, 0])


def test_lines_that_share_a_colour_differ_in_their_stroke():
    lines = PICTURES["entropies"]().figure.axes[0].lines[:3]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 3
