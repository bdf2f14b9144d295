"""Recorded steps. Oracles: the engine's own result for the same prompt; a clock that the test moves."""

from __future__ import annotations

import pytest
from tests.random_model import TINY, random_model

from llmcourse.engine.engine import Engine
from llmcourse.engine.sampling import SamplingParams
from llmcourse.measure import trace
from llmcourse.measure.cards import CARDS
from llmcourse.measure.trace import record, watched
from llmcourse.ops import CPU, REFERENCE

IDS = list(range(1, 12))


def shares(steps) -> list[tuple[int, int]]:
    return [(step.n_tokens, step.n_past) for step in steps]


def test_a_prompt_is_one_step_and_every_later_token_another():
    ran = record(Engine(random_model()), IDS, 4)
    assert shares(ran.prefill) == [(11, 0)] and shares(ran.decode) == [(1, 11), (1, 12), (1, 13)]
    assert len(ran.token_times) == 4


def test_a_prompt_in_pieces_is_several_steps():
    ran = record(Engine(random_model(), max_step_tokens=5), IDS, 2)
    assert shares(ran.prefill) == [(5, 0), (5, 5), (1, 10)] and shares(ran.decode) == [(1, 11)]


def test_without_a_cache_every_step_computes_everything():
    ran = record(Engine(random_model(), cache="none"), IDS, 3)
    assert shares(ran.steps) == [(11, 0), (12, 0), (13, 0)]


def test_the_steps_add_up_to_the_time_of_the_request():
    ran = record(Engine(random_model()), IDS, 5)
    whole = sum(step.seconds for step in ran.steps)
    assert whole >= ran.token_times[-1] - ran.arrival > 0
    assert min(step.seconds for step in ran.steps) > 0


def test_end_of_text_does_not_cut_a_recording_short_and_the_context_does():
    assert len(record(Engine(random_model()), [1] * 60, 30).token_times) == TINY.context - 60


def test_other_requests_in_the_engine_are_refused():
    engine = Engine(random_model())
    engine.add(IDS, SamplingParams(max_tokens=4))
    with pytest.raises(ValueError, match="1 other requests"):
        record(engine, IDS, 2)


def test_watching_changes_no_token():
    parts, _ = watched(CPU)
    plain, seen = (Engine(random_model(), table).generate(IDS, max_tokens=9, temperature=0) for table in (CPU, parts))
    assert seen.output_ids == plain.output_ids


def test_busy_seconds_are_those_inside_a_stage_nested_ones_once(monkeypatch):
    now = {"time": 0.0}
    monkeypatch.setattr(trace, "perf_counter", lambda: now["time"])

    def passing(stage, function):
        def call(*args, **kwargs):
            now["time"] += 1.0  # every stage takes a second, and swiglu three more for its linears
            return function(*args, **kwargs)

        return call

    parts, busy = watched(REFERENCE.wrapped(passing))
    model = random_model()
    Engine(model, parts).generate(IDS, max_tokens=1, temperature=0)
    layers = TINY.n_layers
    calls = 1 + 1 + (2 * layers + 1) + (7 * layers + 1) + 2 * layers + layers + layers + 1  # docs/parts.md, calls in a step
    assert busy.seconds == now["time"] == calls


def test_a_watched_engine_says_of_each_step_how_long_it_computed():
    parts, busy = watched(CPU)
    ran = record(Engine(random_model(), parts), IDS, 4, busy)
    assert all(0 < step.busy_s < step.seconds for step in ran.steps)
    assert sum(step.busy_s for step in ran.steps) == pytest.approx(busy.seconds)
    assert record(Engine(random_model()), IDS, 2).steps[0].busy_s is None


def test_published_cards_have_a_ridge_that_their_numbers_give():
    assert {name: round(card.ridge) for name, card in CARDS.items()} == {
        "NVIDIA T4": 203, "NVIDIA RTX 4090": 164, "NVIDIA A100 80GB": 153, "NVIDIA H100 SXM": 295, "NVIDIA H200": 206,
        "AMD MI300X": 247, "Apple M4 Max": 29, "a laptop's CPU": 10,
    }  # fmt: skip
