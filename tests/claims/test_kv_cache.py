"""Statements of lesson 07: the verdicts follow the numbers; the exact ones are exact."""

from __future__ import annotations

import pytest

from llmcourse.claims import CORRECTED, FAILS, HOLDS, claims
from llmcourse.claims.kv_cache import gain_of_the_cache, halves

FLAT = {16: 1.0, 512: 1.0}


def test_five_times_holds_when_a_whole_text_comes_so_much_sooner():
    found = gain_of_the_cache({16: 1.0, 512: 20.0}, FLAT)
    assert found.verdict == HOLDS and "the step at 512 tokens 20.0× faster" in found.measured


def test_it_is_corrected_when_only_single_steps_are():
    found = gain_of_the_cache({16: 1.0, 512: 6.0}, FLAT)
    assert found.verdict == CORRECTED and "for a text at no length measured" in found.measured


def test_it_fails_when_no_step_is():
    assert gain_of_the_cache({16: 1.0, 512: 4.0}, FLAT).verdict == FAILS


def test_an_engine_that_only_sleeps_gains_nothing_from_a_cache():
    """Planted: every step takes a second, with a cache and without."""
    assert gain_of_the_cache(FLAT, FLAT).verdict == FAILS


@pytest.mark.parametrize("fit, reserved", [({2048: 32, 4096: 32}, 2.0), ({2048: 32, 4096: 16}, 1.0), ({2048: 0, 4096: 0}, 2.0)],
                         ids=["a constant batch", "a constant reserve", "nothing fits"])
def test_a_batch_that_does_not_halve_fails(fit, reserved):
    """Planted measurements."""
    assert halves(fit, reserved).verdict == FAILS


def test_a_cache_of_exactly_one_megabyte_a_token_would_hold(monkeypatch):
    """Planted: the model that the article's round numbers describe; and one of half the size."""
    monkeypatch.setattr("llmcourse.measure.memory.kv_bytes_per_token", lambda model: 1e6)
    monkeypatch.setattr("llmcourse.measure.memory.kv_bytes", lambda model, n: n * 1e6)
    (claim,) = claims(["C14"])
    assert claim.measure().verdict == HOLDS


def test_13b_is_819200_bytes_per_token_and_the_article_rounds_up():
    (claim,) = claims(["C14"])
    found = claim.measure()
    assert "819,200 bytes per token (0.82 MB), 3.36 GB at 4,096 tokens" in found.measured
    assert found.verdict == CORRECTED and "1.22 times per token, 1.19 times at 4K" in found.why


def test_twice_the_context_is_half_the_batch_and_twice_the_memory_reserved():
    (claim,) = claims(["C15"])
    found = claim.measure()
    assert found.verdict == HOLDS
    assert found.measured.startswith("32 requests of 2,048 tokens, 16 requests of 4,096 tokens, 8 ")
    assert "reserves 2 times" in found.measured


def test_the_measured_one_runs_and_names_its_numbers(monkeypatch):
    """Two short lengths, so that it takes a second; what comes out is this machine's affair."""
    monkeypatch.setattr("llmcourse.claims.kv_cache.LENGTHS", (4, 24))
    (claim,) = claims(["C13"])
    found = claim.check()
    assert found.found.verdict in (HOLDS, CORRECTED, FAILS) and "the step at 24 tokens" in str(found)
    assert claim.lessons == ("07",)
