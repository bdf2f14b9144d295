"""The statement of lesson 08: the verdict follows the numbers, and it can be measured."""

from __future__ import annotations

import pytest

from llmcourse.claims import CORRECTED, FAILS, HOLDS, claims
from llmcourse.claims.smaller_cache import SPECS, judge

SHARES = dict.fromkeys(SPECS, 0.3)
SMALL = dict.fromkeys(SPECS, 0.01)
SINKLESS = SPECS[-1]
HARM = 3.0  # of a cache that forgets nearly everything


def test_all_small_and_harmless_holds():
    assert judge(SHARES, SMALL, heads=0.25, forgetful=HARM).verdict == HOLDS


@pytest.mark.parametrize("harmful, said", [(SINKLESS, "keep the first token"), ("int4", "not for free: int4")])
def test_what_costs_quality_is_a_correction_that_names_it(harmful, said):
    found = judge(SHARES, {**SMALL, harmful: 0.4}, heads=0.25, forgetful=HARM)
    assert found.verdict == CORRECTED and said in found.why


@pytest.mark.parametrize("shares, heads", [({**SHARES, "int8": 1.2}, 0.25), (SHARES, 1.0)])
def test_a_cache_that_is_not_smaller_does_not_hold(shares, heads):
    assert judge(shares, SMALL, heads, forgetful=HARM).verdict == FAILS


@pytest.mark.parametrize("forgetful", [0.0, 0.05, float("nan")])
def test_a_model_for_which_the_past_does_not_matter_proves_nothing(forgetful):
    """Planted: a model whose prediction is a constant; no cache does it any harm."""
    found = judge(SHARES, dict.fromkeys(SPECS, 0.0), heads=0.25, forgetful=forgetful)
    assert found.verdict == FAILS and "could not be seen" in found.why


def test_c16_is_measured_and_corrected():
    found = claims(["c16"])[0].check().found
    assert found.verdict == CORRECTED and "keep the first token" in found.why
    assert "int8 27 % of the bytes" in found.measured and "shared heads 25 % of the bytes" in found.measured
