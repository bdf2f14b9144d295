"""Drawn inputs: fixed by seed and label, and by nothing else."""

from __future__ import annotations

import random

import pytest
import torch

from llmcourse.checks.rng import Rng

DRAWS = [lambda r: r.ints(5, 0, 10**6), lambda r: r.text(40), lambda r: r.words(9), lambda r: r.bytes(9), lambda r: r.uniform(),
         lambda r: r.shuffled(range(50)), lambda r: r.normal(4).tolist(), lambda r: r.integers(0, 10**6, 4).tolist(),
         lambda r: r.uniform(4).tolist()]


@pytest.mark.parametrize("draw", DRAWS)
def test_the_same_seed_and_label_give_the_same_and_others_give_others(draw):
    torch.manual_seed(0)
    random.seed(0)
    first = draw(Rng(1, "a"))
    torch.manual_seed(5)
    random.seed(5)
    assert draw(Rng(1, "a")) == first
    assert draw(Rng(2, "a")) != first
    assert draw(Rng(1, "b")) != first


def test_drawing_leaves_the_global_generators_alone():
    before = torch.get_rng_state(), random.getstate()
    for draw in DRAWS:
        draw(Rng(3, "x"))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]


def test_shapes_and_bounds_are_those_asked_for():
    rng = Rng(1, "a")
    assert rng.normal(2, 3).shape == (2, 3) and rng.normal(2).dtype == torch.float32
    drawn = rng.uniform(1000, low=2.0, high=3.0)
    assert 2.0 <= drawn.min() and drawn.max() < 3.0
    whole = rng.integers(4, 7, 1000)
    assert set(whole.tolist()) == {4, 5, 6}
    assert len(rng.bytes(0)) == 0 and len(rng.text(17)) == 17


def test_text_mixes_scripts_so_that_characters_have_one_to_four_bytes():
    assert {len(c.encode()) for c in Rng(1, "a").text(500)} == {1, 2, 3, 4}
