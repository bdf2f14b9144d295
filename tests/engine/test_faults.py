"""An error belongs to its request: its neighbours go on as if nothing had been, and nothing half-written is ever read.

Oracle: the same requests in an engine in which nothing fails; the tiny model in float64, so ids are identical.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from llmcourse import Engine, SamplingParams
from llmcourse.engine.prompts import IdsOnly
from llmcourse.errors import CourseError, NonFiniteLogits, OutOfMemory
from llmcourse.ops import CPU
from tests.random_model import TINY, random_model

PROMPTS = [[5, 9, 2, 77, 31, 8, 8, 60], [1], [96, 3, 50, 12, 41], [7] * 11]
PARAMS = SamplingParams(max_tokens=20, temperature=0)
CACHES = ["contiguous", "none", "int8", "int4:channel/4", "window:6+2"]


class Boom(Exception):
    """What a learner's part may raise."""


@pytest.fixture(scope="module")
def tiny():
    return random_model()


def outputs(engine, params=PARAMS):
    return [result.output_ids for result in engine.generate(PROMPTS, params)]


def add_all(engine, params=PARAMS):
    return [engine.add(prompt, params) for prompt in PROMPTS]


def run(engine, requests):
    """Step until all have ended; a step bound, so that an engine that hangs fails."""
    for _ in range(500):
        if all(request.finish_reason for request in requests):
            return
        engine.step()
    raise AssertionError(f"still running after 500 steps: {[request.finish_reason for request in requests]}")


def is_clean(engine):
    return engine.scheduler.n_unfinished == 0 and not getattr(engine.cache, "slots", {})


def failing_sample(victim, error):
    """The table whose `sample` raises at the 4th token of one prompt, once."""
    left = [error]

    def sample(logits, params, u, previous):
        if previous[: len(victim)] == victim and len(previous) == len(victim) + 3 and left:
            raise left.pop()
        return CPU.sample(logits, params, u, previous)

    return replace(CPU, sample=sample)


@pytest.mark.parametrize("cache", CACHES)
def test_a_sampler_that_raises_ends_its_own_request_and_no_other(tiny, cache):
    want = outputs(Engine(tiny, cache=cache))
    engine = Engine(tiny, failing_sample(PROMPTS[0], Boom("mine")), cache=cache)
    requests = add_all(engine)
    run(engine, requests)
    assert requests[0].finish_reason == "error" and isinstance(requests[0].error, Boom)
    assert requests[0].output_ids == want[0][:3]
    assert [request.output_ids for request in requests[1:]] == want[1:] and is_clean(engine)


def test_nan_logits_of_one_request_end_it_alone_and_name_it(tiny):
    want = outputs(Engine(tiny))

    def sample(logits, params, u, previous):
        spoiled = logits * math.nan if previous[:1] == [1] and len(previous) == 4 else logits
        return CPU.sample(spoiled, params, u, previous)

    engine = Engine(tiny, replace(CPU, sample=sample))
    requests = add_all(engine)
    run(engine, requests)
    assert isinstance(requests[1].error, NonFiniteLogits) and "1 prompt tokens" in str(requests[1].error)
    assert "position 4" in str(requests[1].error)
    assert [requests[i].output_ids for i in (0, 2, 3)] == [want[i] for i in (0, 2, 3)] and is_clean(engine)


class BreakingDecoder(IdsOnly):
    """A decoder that raises at one id."""

    def __init__(self, at, error):
        super().__init__(())
        self.at, self.error = at, error

    def stream(self, stop=(), skip_special_tokens=True):
        return self

    def push(self, token):
        if token == self.at:
            raise self.error
        return f"{token} "


def test_a_decoder_that_raises_ends_its_own_request_and_the_token_does_not_count(tiny):
    want = outputs(Engine(tiny))
    at = want[0][5]
    engine = Engine(tiny, tokenizer=BreakingDecoder(at, Boom("mine")))
    requests = add_all(engine)
    run(engine, requests)
    for request, ids in zip(requests, want):
        cut = ids[: ids.index(at)] if at in ids else ids
        assert request.output_ids == cut and request.finish_reason == ("error" if at in ids else "length")
        assert request.text == "".join(f"{token} " for token in cut)
    assert is_clean(engine)


def test_an_error_is_raised_to_the_owner_of_its_request_and_to_nobody_else(tiny):
    want = outputs(Engine(tiny))
    engine = Engine(tiny, failing_sample(PROMPTS[2], Boom("mine")))
    streams = [engine.stream(prompt, PARAMS) for prompt in PROMPTS]
    assert [[token.id for token in streams[i]] for i in (0, 1, 3)] == [want[i] for i in (0, 1, 3)]
    got = []
    with pytest.raises(Boom):
        for token in streams[2]:
            got.append(token.id)
    assert got == want[2][:3] and list(streams[2]) == [] and streams[2].result.finish_reason == "error"


def test_generate_raises_the_error_of_its_own_and_leaves_others_alone(tiny):
    want = outputs(Engine(tiny))
    engine = Engine(tiny, failing_sample(PROMPTS[0], Boom("mine")))
    other = engine.stream(PROMPTS[3], PARAMS)
    with pytest.raises(Boom):
        engine.generate(PROMPTS[:2], PARAMS)
    assert engine.scheduler.n_unfinished == 1
    assert [token.id for token in other] == want[3] and is_clean(engine)


@pytest.mark.parametrize("where", ["sample", "attend", "decoder"])
@pytest.mark.parametrize("cache", ["contiguous", "window:6+2"])
def test_ctrl_c_leaves_nothing_of_the_call_and_the_others_go_on(tiny, cache, where):
    want = outputs(Engine(tiny, cache=cache))
    left, n_calls = [KeyboardInterrupt()], [0]

    def interrupted(function, at):
        def call(*args):
            n_calls[0] += 1
            if n_calls[0] > at and left:
                raise left.pop()
            return function(*args)

        return call

    parts, tokenizer = CPU, IdsOnly(())
    if where == "decoder":
        tokenizer.push = interrupted(tokenizer.push, 11)
    else:
        parts = replace(CPU, **{where: interrupted(getattr(CPU, where), 11)})
    engine = Engine(tiny, parts, tokenizer=tokenizer, cache=cache)
    others = [engine.stream(prompt, PARAMS) for prompt in PROMPTS[1:]]
    with pytest.raises(KeyboardInterrupt):
        engine.generate(PROMPTS[0], PARAMS)
    assert engine.scheduler.n_unfinished == len(others)
    assert [[token.id for token in stream] for stream in others] == want[1:] and is_clean(engine)


def test_ctrl_c_while_a_decoder_works_neither_loses_nor_repeats_text(tiny):
    """The decoder has read the token when it is interrupted, and reads it again."""

    class Joining(IdsOnly):
        def __init__(self):
            super().__init__(())
            self.read, self.left = [], []

        def stream(self, stop=(), skip_special_tokens=True):
            made = Joining()
            made.left = self.left
            return made

        def push(self, token):
            self.read.append(token)
            if len(self.read) == 5 and self.left:
                raise self.left.pop()
            return f"{len(self.read)}:{token} "

    tokenizer = Joining()
    want = Engine(tiny, tokenizer=tokenizer).generate(PROMPTS[0], PARAMS).text
    tokenizer.left.append(KeyboardInterrupt())
    engine = Engine(tiny, tokenizer=tokenizer)
    request = engine.add(PROMPTS[0], PARAMS)
    with pytest.raises(KeyboardInterrupt):
        run(engine, [request])
    run(engine, [request])
    assert request.text == want


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("after", [False, True], ids=["before an update", "after an update"])
def test_a_step_that_fails_in_any_layer_leaves_no_trace_in_any_cache(tiny, cache, after):
    """Every layer, and three moments: in the prompts' first pieces, in later ones, and while decoding."""
    settings = dict(cache=cache) if cache == "none" else dict(cache=cache, max_step_tokens=9)
    short = replace(PARAMS, max_tokens=9)
    want = outputs(Engine(tiny, **settings), short)
    for layer in range(TINY.n_layers):
        for at_call in (0, 2, 6):
            engine = Engine(tiny, **settings)
            requests, update, n_seen = add_all(engine, short), engine.cache.update, [0]

            def broken(number, *args, update=update, n_seen=n_seen, layer=layer, at_call=at_call):
                n_seen[0] += number == layer
                fails = number == layer and n_seen[0] == at_call + 1
                if fails and not after:
                    raise Boom(f"layer {layer}")
                entries = update(number, *args)
                if fails:
                    raise Boom(f"layer {layer}")
                return entries

            engine.cache.update = broken
            with pytest.raises(Boom):
                run(engine, requests)
            run(engine, requests)
            assert [request.output_ids for request in requests] == want and is_clean(engine)


@pytest.mark.parametrize("said", [
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 24 bytes.",
    "CUDA out of memory. Tried to allocate 20.00 GiB", "DefaultCPUAllocator: not enough memory: you tried to allocate 3 bytes",
])  # fmt: skip
def test_a_step_without_memory_says_so_and_is_tried_again(tiny, said):
    want, left = outputs(Engine(tiny)), [RuntimeError(said)]

    def attend(*args):
        if left:
            raise left.pop()
        return CPU.attend(*args)

    engine = Engine(tiny, replace(CPU, attend=attend))
    requests = add_all(engine)
    with pytest.raises(OutOfMemory, match=r"no memory for a step of 25 tokens.*max_step_tokens"):
        engine.step()
    run(engine, requests)
    assert [request.output_ids for request in requests] == want


def test_another_runtime_error_of_a_step_is_not_called_no_memory(tiny):
    engine = Engine(tiny, replace(CPU, attend=lambda *_: torch.ones(2) @ torch.ones(3)))
    with pytest.raises(RuntimeError, match="size") as caught:
        engine.generate(PROMPTS[0], PARAMS)
    assert not isinstance(caught.value, CourseError) and is_clean(engine)


def test_another_runtime_error_of_a_cache_is_not_called_no_memory(tiny, monkeypatch):
    engine = Engine(tiny)
    monkeypatch.setattr(engine.cache, "_room", lambda *_: torch.ones(2) @ torch.ones(3))
    with pytest.raises(RuntimeError, match="size"):
        engine.generate(PROMPTS[0], PARAMS)
    assert is_clean(engine)


def test_a_cache_without_memory_for_a_prompt_ends_it_alone(tiny):
    """With nobody to wait for, it would wait for ever."""
    want = outputs(Engine(tiny))
    engine = Engine(tiny, max_requests=1)
    slot = engine.cache._slot

    def no_memory(capacity):
        if capacity == len(PROMPTS[2]) + PARAMS.max_tokens:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return slot(capacity)

    engine.cache._slot = no_memory
    requests = add_all(engine)
    run(engine, requests)
    assert isinstance(requests[2].error, OutOfMemory) and "bytes on cpu" in str(requests[2].error)
    assert [requests[i].output_ids for i in (0, 1, 3)] == [want[i] for i in (0, 1, 3)] and is_clean(engine)


@pytest.mark.parametrize("cache", ["contiguous", "int8", "window:6+2"])
def test_preempted_requests_are_computed_again_to_the_same_ids(tiny, cache):
    """Too little room for all four at once: the last give way and come again; sampled, so that noise must not move either."""
    params = SamplingParams(max_tokens=20, temperature=1.2, seed=5)
    want = [result.output_ids for result in Engine(tiny, cache=cache).generate(PROMPTS, params)]
    engine = Engine(tiny, cache=cache, max_step_tokens=7)
    reserve, lengths, close = engine.cache.reserve, {}, engine.cache.close
    preempted = []

    def bounded(slot, length):
        if sum(lengths.values()) - lengths.get(slot, 0) + length > 45:
            return False
        lengths[slot] = length
        return reserve(slot, length)

    def closing(slot):
        preempted.append(lengths.pop(slot, 0))
        close(slot)

    engine.cache.reserve, engine.cache.close = bounded, closing
    assert [result.output_ids for result in engine.generate(PROMPTS, params)] == want
    assert len(preempted) > len(PROMPTS) and is_clean(engine)
