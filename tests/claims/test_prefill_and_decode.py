"""Verdicts of lesson 06. Oracle: numbers that the test chose so that one condition at a time holds or fails."""

from __future__ import annotations

import pytest

from llmcourse import Engine
from llmcourse.claims import CORRECTED, FAILS, HOLDS, claims
from llmcourse.claims.prefill_and_decode import bound, edges, misleading, waits
from llmcourse.engine.prompts import IdsOnly
from llmcourse.measure.roofline import Ceilings, Placed, step_work
from llmcourse.measure.thin import thin
from llmcourse.ops import default_parts

ROOF = Ceilings(bytes_per_s=20e9, flops_per_s=150e9)
STEPS = {1: 0.03, 4: 0.035, 512: 0.9}
OVERHEAD = 0.009


def test_the_ledger_has_the_lessons_three_statements():
    assert [(one.id, one.lessons) for one in claims(["C11", "C12", "C26"])] == [(name, ("06",)) for name in ("C11", "C12", "C26")]


def test_both_bounds_hold_where_arithmetic_fills_prefill_and_memory_decode(model):
    found = bound(STEPS, OVERHEAD, ROOF, model)
    assert (found.verdict, found.why) == (HOLDS, "")
    assert "ridge point 7.5" in found.measured and "four tokens take 1.2 times as long as one" in found.measured
    assert "without the weights 30% of the time is left" in found.measured


@pytest.mark.parametrize("steps, overhead, roof, why", [
    ({**STEPS, 4: 0.13}, OVERHEAD, ROOF, "one token waits for arithmetic"),
    ({**STEPS, 512: 2.9}, OVERHEAD, ROOF, "less than half of a prefill is arithmetic"),
    (STEPS, 0.016, ROOF, "is overhead"),
    (STEPS, OVERHEAD, Ceilings(20e9, 8e9), "one token waits for arithmetic"),  # a ridge point of 0.4, below decode
    (STEPS, OVERHEAD, Ceilings(20e9, 8e12), "less than half of a prefill is arithmetic"),  # of 400, above a prompt of 512
])  # fmt: skip
def test_a_bound_fails_where_the_times_or_the_counting_speak_against_it(model, steps, overhead, roof, why):
    found = bound(steps, overhead, roof, model)
    assert found.verdict == FAILS and why in found.why


def test_an_engine_that_only_sleeps_is_bound_by_neither(model):
    """Planted: ten seconds for every step, whatever is in it, weights or none. A sleeper once passed as memory-bound."""
    found = bound(dict.fromkeys(STEPS, 10.0), 10.0, ROOF, model)
    assert found.verdict == FAILS and "less than half of a prefill is arithmetic" in found.why and "overhead" in found.why


def test_an_engine_that_only_computes_is_not_memory_bound(model):
    """Planted: time in proportion to the tokens, and none without weights."""
    found = bound({n: n * 0.002 for n in STEPS}, 0.0, ROOF, model)
    assert found.verdict == FAILS and found.why == "a step of one token waits for arithmetic"


def test_an_output_that_does_not_raise_the_itl_is_the_correction():
    found = waits({64: 0.2, 4000: 8.0}, {64: 0.060, 4000: 0.080}, grown=1.01)
    assert found.verdict == CORRECTED and "5.1 ms for 1,000 tokens" in found.why
    assert found.measured.startswith("from 64 to 4,000 tokens: TTFT 200 to 8,000 ms, ITL 60.0 to 80.0 ms")


def test_an_engine_that_slows_down_with_every_token_it_writes_is_what_the_statement_describes():
    """Planted: here it holds without a correction."""
    gaps = [0.060 + 0.0002 * i for i in range(128)]
    first, last = edges(gaps)
    assert waits({64: 0.2, 4000: 8.0}, {64: first, 4000: 0.9}, grown=last / first).verdict == HOLDS


@pytest.mark.parametrize("ttft, itl, why", [((1.0, 1.9), (0.06, 0.08), "TTFT"), ((1.0, 9.0), (0.06, 0.065), "ITL")])
def test_waits_that_do_not_grow_fail(ttft, itl, why):
    found = waits(dict(zip((64, 4000), ttft)), dict(zip((64, 4000), itl)), grown=1.0)
    assert found.verdict == FAILS and why in found.why


def test_an_engine_that_only_sleeps_hurts_nobody_more_with_a_longer_prompt():
    """Planted: a second for every step."""
    assert waits({64: 1.0, 4000: 1.0}, {64: 1.0, 4000: 1.0}, grown=1.0).verdict == FAILS


def test_utilization_misleads_where_both_are_busy_and_only_prefill_computes():
    found = misleading({"prefill": 0.98, "decode": 0.95}, {"prefill": 0.8, "decode": 0.05})
    assert found.verdict == CORRECTED and "MFU is what falls" in found.why


def test_utilization_speaks_true_where_decode_idles_and_fails_where_it_computes_as_much():
    assert misleading({"prefill": 0.98, "decode": 0.4}, {"prefill": 0.8, "decode": 0.05}).verdict == HOLDS
    assert misleading({"prefill": 0.98, "decode": 0.9}, {"prefill": 0.8, "decode": 0.5}).verdict == FAILS


def test_utilization_of_an_engine_that_only_sleeps_is_high_in_neither(model):
    """Planted: ten seconds for every step. Prefill brings 512 times the work of decode, and still hardly any."""
    mfu = {role: Placed(step_work(model.config, [piece], 32, 32), 10.0, ROOF).mfu
           for role, piece in (("prefill", (512, 0)), ("decode", (1, 512)))}
    assert mfu["prefill"] > 2 * mfu["decode"]
    assert misleading({"prefill": 1.0, "decode": 1.0}, mfu).verdict == FAILS


def test_a_thin_model_has_every_call_of_the_model_and_a_hundredth_of_its_bytes(model):
    """Oracle: the counter of calls of the table of parts."""
    def calls(one):
        parts, counter = default_parts("cpu").counted()
        Engine(one, parts, tokenizer=IdsOnly(())).generate([1, 2], temperature=0, max_tokens=2, ignore_eos=True)
        return dict(counter)

    small = thin(model)
    assert calls(small) == calls(model)
    assert small.config.n_params < model.config.n_params / 100


def test_a_measurement_runs_and_gives_a_verdict(monkeypatch):
    monkeypatch.setattr("llmcourse.measure.ceilings.ceilings", lambda *_: ROOF)
    found = claims(["C26"])[0].check().found
    assert found.verdict in (HOLDS, CORRECTED, FAILS) and "MFU" in found.measured
