"""Verdicts of lesson 06. Oracle: numbers that the test chose so that one condition at a time holds or fails."""

from __future__ import annotations

import pytest

from llmcourse.claims import CORRECTED, FAILS, HOLDS, claims
from llmcourse.claims.prefill_and_decode import bound, misleading, waits
from llmcourse.measure.roofline import Ceilings

ROOF = Ceilings(bytes_per_s=20e9, flops_per_s=150e9)
STEPS = {1: 0.06, 4: 0.065, 64: 0.15, 512: 0.9}


def test_the_ledger_has_the_lessons_three_statements():
    assert [(one.id, one.lessons) for one in claims(["C11", "C12", "C26"])] == [(name, ("06",)) for name in ("C11", "C12", "C26")]


def test_both_bounds_hold_where_few_tokens_are_free_and_many_are_not(model):
    found = bound(STEPS, ROOF, model)
    assert (found.verdict, found.why) == (HOLDS, "")
    assert "ridge point 7.5" in found.measured and "four tokens take 1.1 times as long as one" in found.measured


@pytest.mark.parametrize("steps, roof, why", [
    ({**STEPS, 4: 0.13}, ROOF, "one token did not wait for memory"),
    ({**STEPS, 512: 0.4}, ROOF, "long step did not wait for arithmetic"),
    (STEPS, Ceilings(20e9, 8e9), "one token did not wait for memory"),  # a ridge point of 0.4, below decode
    (STEPS, Ceilings(20e9, 8e12), "long step did not wait for arithmetic"),  # of 400, above a prompt of 512
])  # fmt: skip
def test_a_bound_fails_where_the_times_or_the_counting_speak_against_it(model, steps, roof, why):
    found = bound(steps, roof, model)
    assert found.verdict == FAILS and why in found.why


def test_long_prompts_and_long_contexts_are_told_apart_with_the_correction():
    found = waits({64: 0.2, 4000: 8.0}, {64: 0.060, 4000: 0.080})
    assert found.verdict == CORRECTED and "5.1 ms for 1,000 tokens" in found.why
    assert found.measured == "from 64 to 4,000 tokens: TTFT 200 to 8,000 ms, ITL 60.0 to 80.0 ms"


@pytest.mark.parametrize("ttft, itl, why", [((1.0, 1.9), (0.06, 0.08), "TTFT"), ((1.0, 9.0), (0.06, 0.065), "ITL")])
def test_waits_that_do_not_grow_fail(ttft, itl, why):
    found = waits(dict(zip((64, 4000), ttft)), dict(zip((64, 4000), itl)))
    assert found.verdict == FAILS and why in found.why


def test_utilization_misleads_where_both_are_busy_and_only_prefill_computes():
    found = misleading({"prefill": 0.98, "decode": 0.95}, {"prefill": 0.8, "decode": 0.05})
    assert found.verdict == CORRECTED and "MFU is what falls" in found.why


def test_utilization_speaks_true_where_decode_idles_and_fails_where_it_computes_as_much():
    assert misleading({"prefill": 0.98, "decode": 0.4}, {"prefill": 0.8, "decode": 0.05}).verdict == HOLDS
    assert misleading({"prefill": 0.98, "decode": 0.9}, {"prefill": 0.8, "decode": 0.5}).verdict == FAILS


def test_a_measurement_runs_and_gives_a_verdict(monkeypatch):
    monkeypatch.setattr("llmcourse.measure.ceilings.ceilings", lambda *_: ROOF)
    found = claims(["C26"])[0].check().found
    assert found.verdict in (HOLDS, CORRECTED, FAILS) and "MFU" in found.measured
