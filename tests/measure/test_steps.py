"""The cost of one step at a length. Oracles: counts of what the model was given, sums done by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.random_model import TINY, random_model

from llmcourse.measure import steps
from llmcourse.ops import CPU

LONG = replace(TINY, context=512)


@pytest.fixture
def watched(monkeypatch):
    """Instead of timing, note how many rows and how many keys attention saw; every run then takes a second."""
    seen = []

    def attend(q, kv, batch, scale):
        seen.append((len(q), len(kv[0][0])))
        return CPU.attend(q, kv, batch, scale)

    def once(work, device, runs, warm_up):
        work()
        return 1.0

    monkeypatch.setattr(steps, "median_time", once)
    return replace(CPU, attend=attend), seen


@pytest.mark.parametrize("length", [1, 2, 40, 300])
def test_with_a_cache_one_token_looks_at_all_of_them(watched, length):
    parts, seen = watched
    assert steps.step_seconds(random_model(config=LONG), length, cached=True, parts=parts) == 1.0
    assert seen == [(1, length)] * TINY.n_layers


@pytest.mark.parametrize("length", [1, 2, 40, 300])
def test_without_one_all_tokens_go_through(watched, length):
    parts, seen = watched
    steps.step_seconds(random_model(config=LONG), length, cached=False, parts=parts)
    assert seen == [(length, length)] * TINY.n_layers


def test_a_step_takes_some_time():
    assert steps.step_seconds(random_model(), 20, cached=True, runs=1) > 0


def test_between_measured_lengths_it_is_a_straight_line_and_outside_the_nearest():
    seconds = {10: 1.0, 20: 3.0, 40: 4.0}
    got = [steps.at_length(seconds, n) for n in (1, 10, 15, 20, 30, 40, 99)]
    assert got == pytest.approx([1.0, 1.0, 2.0, 3.0, 3.5, 4.0, 4.0])


def test_a_step_becomes_five_times_slower_before_the_whole_text_is():
    """Seconds n against 1: a step is five times slower at 5; the sum n(n+1)/2 against n at n = 9."""
    slow, fast = {n: float(n) for n in range(1, 31)}, {n: 1.0 for n in range(1, 31)}
    assert steps.first_length(slow, fast, 5) == 5
    assert steps.first_length(slow, fast, 5, whole=True) == 9
    assert steps.first_length(slow, fast, 31) is None
    assert steps.text_seconds(slow, 9) == 45
