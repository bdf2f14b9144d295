"""Figures of lesson 07: axes, words with the numbers that were drawn, and a crossing where it belongs."""

from __future__ import annotations

import pytest

from llmcourse.workbook import plots

WITHOUT, CACHED = {16: 0.06, 128: 0.24, 512: 0.8}, {16: 0.04, 128: 0.04, 512: 0.05}
PICTURES = {
    "computed_and_kept": lambda: plots.computed_and_kept(5),
    "time_per_token": lambda: plots.time_per_token(WITHOUT, CACHED),
    "kv_memory": lambda: plots.kv_memory("Llama-2-13B", 4096, 2, 8),
    "batch_that_fits": lambda: plots.batch_that_fits(["Llama-2-13B"], [1024, 2048], 80),
}
SAID = {
    "computed_and_kept": "15 in all; with one only the last box of each row is, 5 in all",
    "time_per_token": "from 60 ms at 16 tokens to 800 ms at 512",
    "kv_memory": "With 2 requests of 4,096 tokens the cache takes 3.36 GB, smaller than the weights' 26.0 GB",
    "batch_that_fits": "At 1K, 2K tokens: Llama-2-13B 64, 32",
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_figures_axes_say_what_they_measure(name):
    axes = PICTURES[name]().figure.axes[0]
    assert axes.get_title(loc="left") and axes.get_xlabel() and axes.get_ylabel()


def test_measured_axes_have_their_units():
    assert "(ms)" in PICTURES["time_per_token"]().figure.axes[0].get_ylabel()
    assert "(GB)" in PICTURES["kv_memory"]().figure.axes[0].get_ylabel()


def test_the_crossing_is_marked_where_the_lines_are_five_times_apart():
    """Between 16 and 128 tokens the upper line rises by 0.18 s in 112: 0.2 s, five times 0.04, is reached at 104."""
    assert "at 104 tokens it is 5 times above" in PICTURES["time_per_token"]().text


def test_lines_that_never_part_have_no_mark():
    assert "never 5 times above" in plots.time_per_token(CACHED, CACHED).text


def test_the_memory_follows_every_control():
    base = ("Llama-2-13B", 4096, 1, 16)
    moved = [("Llama-3-8B", *base[1:]), (base[0], 8192, 1, 16), (base[0], 4096, 3, 16), (*base[:3], 4)]
    words = {plots.kv_memory(*settings).text for settings in (base, *moved)}
    assert len(words) == 5


def test_a_cache_larger_than_the_weights_and_one_that_stops_are_said():
    assert "larger than" in plots.kv_memory("Llama-2-13B", 65_536, 1, 16).text
    assert "never meet" in plots.kv_memory("Mistral-7B", 65_536, 1, 16).text
