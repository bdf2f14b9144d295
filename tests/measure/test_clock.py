"""Latencies and the clock. Oracles: numpy's percentiles; times that the test chose; a clock that the test moves."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmcourse.measure import clock
from llmcourse.measure.clock import Latency, Percentiles, median_time, percentile, pooled, times

some_times = st.lists(st.floats(0, 1e6), min_size=1, max_size=40)


@given(some_times, st.floats(0, 100))
def test_percentiles_are_numpys_in_any_order_of_the_values(values, p):
    assert percentile(values, p) == pytest.approx(float(np.percentile(values, p)), rel=1e-9, abs=1e-9)


def test_a_percentile_between_two_values_is_interpolated():
    assert percentile([40.0, 10.0, 20.0, 30.0], 50) == 25.0
    assert Percentiles.of([4.0, 1.0, 2.0, 3.0, 5.0]) == pytest.approx((3.0, 4.8, 4.96))


@pytest.mark.parametrize("values, p", [([], 50), ([1.0], -1), ([1.0], 101)])
def test_a_percentile_that_does_not_exist_is_refused(values, p):
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, p)


def test_the_first_wait_is_the_ttft_and_no_itl():
    latency = Latency.from_times(10.0, [13.0, 13.5, 14.5])
    assert latency == Latency(3.0, (0.5, 1.0))
    assert latency.itl_mean_s == 0.75 and latency.itl == pytest.approx((0.75, 0.975, 0.995))


def test_tokens_per_second_count_from_the_arrival_and_decode_from_the_first_token():
    latency = Latency.from_times(10.0, [13.0, 13.5, 14.5])
    assert latency.tokens_per_s == pytest.approx(3 / 4.5)
    assert latency.decode_tokens_per_s == pytest.approx(2 / 1.5)


def test_a_single_token_has_a_ttft_and_no_gaps():
    latency = Latency.from_times(1.0, [3.0])
    assert (latency.ttft_s, latency.tokens_per_s) == (2.0, 0.5)
    assert (latency.itl_mean_s, latency.itl, latency.decode_tokens_per_s) == (None, None, None)


@given(st.floats(0, 1e3), st.lists(st.floats(0, 10), min_size=1, max_size=20))
def test_times_and_gaps_say_the_same(arrival, gaps):
    reached = [arrival + sum(gaps[: i + 1]) for i in range(len(gaps))]
    again = Latency.from_times(arrival, reached).token_times
    assert [arrival + one for one in again] == pytest.approx(reached)


@pytest.mark.parametrize("token_times", [[], [0.5], [2.0, 1.5]])
def test_no_tokens_or_times_that_run_backwards_are_refused(token_times):
    with pytest.raises(ValueError):
        Latency.from_times(1.0, token_times)


def test_a_result_without_a_token_has_no_latency():
    with pytest.raises(ValueError, match="cancelled"):
        Latency.of(SimpleNamespace(ttft_s=None, itl_s=[], finish_reason="cancelled"))


def test_several_results_are_pooled_without_the_warm_up():
    results = [SimpleNamespace(ttft_s=ttft, itl_s=itl) for ttft, itl in [(9.0, [9.0]), (1.0, [0.1, 0.3]), (2.0, [0.2])]]
    ttft, itl = pooled(results)
    assert ttft.p50 == pytest.approx(1.5) and itl.p50 == pytest.approx(0.2)
    assert pooled(results, warm_up=0)[0].p50 == pytest.approx(2.0)
    with pytest.raises(ValueError):
        pooled(results, warm_up=3)


def test_an_engines_result_has_the_latency_of_its_times(model):
    from llmcourse import Engine

    result = Engine(model).generate("The capital of France is", temperature=0, max_tokens=4, ignore_eos=True)
    latency = Latency.of(result)
    assert latency.ttft_s == result.ttft_s and list(latency.itl_s) == result.itl_s
    assert latency.tokens_per_s == pytest.approx(result.tokens_per_s)


@pytest.fixture
def moved(monkeypatch):
    """A clock that `moved.pass_by(seconds)` moves on."""
    state = SimpleNamespace(now=0.0)
    state.pass_by = lambda seconds: setattr(state, "now", state.now + seconds)
    monkeypatch.setattr(clock, "perf_counter", lambda: state.now)
    return state


def test_a_median_of_runs_counts_and_the_warm_up_does_not(moved):
    taken = iter([50.0, 3.0, 1.0, 2.0])
    assert times(lambda: moved.pass_by(next(taken)), runs=3) == [3.0, 1.0, 2.0]
    taken = iter([50.0, 60.0, 3.0, 1.0, 2.0])
    assert median_time(lambda: moved.pass_by(next(taken)), runs=3, warm_up=2) == 2.0


def test_an_accelerator_is_waited_for_before_and_after_each_run(moved, monkeypatch):
    import torch

    pending = [7.0]  # seconds that the device is behind

    def synchronize():
        moved.pass_by(pending.pop() if pending else 0.0)

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    assert times(lambda: pending.append(2.0), "cuda", runs=2, warm_up=0) == [2.0, 2.0]
