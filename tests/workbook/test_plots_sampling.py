"""Figures of lesson 05. Oracles: the numbers that were drawn."""

from __future__ import annotations

import pytest
import torch

from llmcourse.workbook import plots


class Spelled:
    """A tokenizer whose token 0 is "␣a", token 1 "␣b", and so on."""

    def tokens(self, ids):
        return [f"␣{chr(ord('a') + token)}" for token in ids]


BEFORE = torch.tensor([0.1, 0.5, 0.15, 0.25])
AFTER = torch.tensor([0.0, 0.625, 0.0, 0.375])
PICTURES = {
    "temperatures": lambda: plots.temperatures(["logit 1", "logit 0"], {"temperature 1": [0.75, 0.25]}),
    "kept_and_cut": lambda: plots.kept_and_cut(Spelled(), BEFORE, AFTER, "top-k 2", shown=3),
    "stripe": lambda: plots.stripe(["␣a", "␣b"], [0.25, 0.75], [0.1, 0.25]),
    "sureness": lambda: plots.sureness({"greedy": [0.5, 0.25, 1.0], "human": [0.5, 0.0, 0.0]}, window=2),
    "three_filters": lambda: plots.three_filters(Spelled(), BEFORE, {"top-k 2": AFTER, "none": BEFORE}, shown=3),
    "repeats": lambda: plots.repeats({"greedy": [0.5, 0.25], "drawn": [0.125, 0.0]}),
    "entropy": lambda: plots.entropy(["␣cat", "␣sat"], [6.25, 0.5], named=1),
    "two_bars": lambda: plots.two_bars({"open": BEFORE, "clear": AFTER}, top_p=0.7, min_p=0.4),
}
SAID = {
    "temperatures": "temperature 1: logit 1 75 %, logit 0 25 %",
    "kept_and_cut": "␣b 50.0 % → 62.5 %, ␣d 25.0 % → 37.5 %, ␣c 15.0 % → cut. In all, 2 of 4 tokens are left",
    "stripe": "u = 0.10 falls on ␣a; u = 0.25 falls on ␣b",
    "sureness": "greedy: mean of the first 2 38 %, of the last 2 62 %",
    "three_filters": "top-k 2 leaves 2 tokens, the best goes from 50.0 % to 62.5 %; none leaves 4 tokens",
    "repeats": "greedy: 50 % of the runs of 1, 25 % of the runs of 2; drawn: 12 % of the runs of 1",
    "entropy": "Most unsure before: ␣cat 6.2 bits. Surest before: ␣sat 0.5 bits",
    "two_bars": "open: the likeliest has 50.0%, top-p 0.7 leaves 2 tokens, min-p 0.4 leaves 2",
}


@pytest.mark.parametrize("name, label", [
    ("temperatures", "probability (%)"), ("kept_and_cut", "probability (%)"), ("stripe", "u"),
    ("sureness", "probability of the token (%)"), ("three_filters", "probability (%)"),
    ("repeats", "repeated runs (%)"), ("entropy", "entropy (bits)"), ("two_bars", "probability (logarithmic)"),
])  # fmt: skip
def test_a_figures_axes_say_what_they_measure(name, label):
    axes = PICTURES[name]().figure.axes[0]
    assert axes.get_title(loc="left") and label in (axes.get_xlabel(), axes.get_ylabel())


def test_the_model_gave_what_is_left_its_old_probability():
    assert "the model gave them 75.0%" in PICTURES["kept_and_cut"]().text


def test_cut_tokens_carry_the_word_and_no_second_bar():
    axes = PICTURES["kept_and_cut"]().figure.axes[0]
    own, left = axes.containers
    assert [text.get_text() for text in axes.texts] == [" cut"]
    assert [round(bar.get_width(), 1) for bar in own] == [50.0, 25.0, 15.0]
    assert [round(bar.get_width(), 1) for bar in left] == [62.5, 37.5, 0.0]


def test_the_stripe_fills_the_interval_from_0_to_1():
    axes = PICTURES["stripe"]().figure.axes[0]
    pieces = [(bar.get_x(), bar.get_x() + bar.get_width()) for container in axes.containers for bar in container]
    assert pieces == [(0.0, 0.25), (0.25, 1.0)] and axes.get_xlim() == (0, 1)


def test_the_two_cuts_stand_at_the_ranks_that_are_kept():
    cuts = [line.get_xdata()[0] for line in PICTURES["two_bars"]().figure.axes[1].lines[1:]]
    assert cuts == [2, 2]
