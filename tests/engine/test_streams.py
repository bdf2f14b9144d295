"""Streams that are dropped, kept unread, read late; engines shared by threads. Oracle: the same requests run by `generate`."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from llmcourse import Engine, SamplingParams
from llmcourse.engine.prompts import IdsOnly
from llmcourse.errors import BadSamplingParams, EngineBusy
from llmcourse.ops import CPU
from tests.random_model import random_model

PROMPT, OTHER = [5, 9, 2, 77, 31], [1, 2, 3]
PARAMS = SamplingParams(max_tokens=30, temperature=0)


@pytest.fixture(scope="module")
def tiny():
    return random_model()


class Letters(IdsOnly):
    """A letter for each token, held back until the next token comes."""

    def __init__(self):
        super().__init__(())
        self.held = ""

    def stream(self, stop=(), skip_special_tokens=True):
        return Letters()

    def push(self, token):
        text, self.held = self.held, chr(97 + token % 26)
        return text

    def finish(self):
        return self.held


def is_empty(engine):
    return engine.scheduler.n_unfinished == 0 and not engine.cache.slots


def test_a_break_out_of_a_loop_over_a_stream_ends_the_request(tiny):
    engine = Engine(tiny)
    for _ in engine.stream(PROMPT, PARAMS):
        break
    assert is_empty(engine)


def test_a_stream_that_is_dropped_closes_itself(tiny):
    engine = Engine(tiny)
    stream = engine.stream(PROMPT, PARAMS)
    next(stream)
    assert not is_empty(engine)
    del stream
    gc.collect()
    assert is_empty(engine)


def test_a_stream_that_is_dropped_in_the_middle_of_a_step_is_gone_after_it(tiny):
    kept = []

    def attend(*args):
        kept.clear()
        return CPU.attend(*args)

    engine = Engine(tiny, replace(CPU, attend=attend))
    kept.append(engine.stream(OTHER, PARAMS))
    assert engine.generate(PROMPT, PARAMS).output_ids == Engine(tiny).generate(PROMPT, PARAMS).output_ids
    assert is_empty(engine)


def test_a_stream_that_nobody_reads_pauses_after_16_tokens_and_can_be_read_on(tiny):
    want = Engine(tiny).generate([PROMPT, OTHER], PARAMS)
    engine = Engine(tiny)
    unread = engine.stream(PROMPT, PARAMS)
    assert engine.generate(OTHER, PARAMS).output_ids == want[1].output_ids
    assert unread.request.n_output == 16
    assert [token.id for token in unread] == want[0].output_ids and is_empty(engine)


def test_a_paused_stream_keeps_no_place_from_others(tiny):
    engine = Engine(tiny, max_requests=1)
    streams = [engine.stream(PROMPT, PARAMS) for _ in range(3)]
    want = Engine(tiny).generate([PROMPT, OTHER], PARAMS)
    assert engine.generate(OTHER, PARAMS).output_ids == want[1].output_ids
    assert [stream.request.n_output for stream in streams] == [16, 16, 16]
    assert [[token.id for token in stream] for stream in streams] == [want[0].output_ids] * 3


def test_a_tokens_text_does_not_depend_on_when_it_is_read(tiny):
    at_once = [token.text for token in Engine(tiny, tokenizer=Letters()).stream(PROMPT, PARAMS)]
    engine = Engine(tiny, tokenizer=Letters())
    late = engine.stream(PROMPT, PARAMS)
    result = engine.generate(PROMPT, PARAMS)
    assert [token.text for token in late] == at_once
    assert "".join(at_once) == result.text and [len(text) for text in at_once] == [0] + [1] * 28 + [2]


def test_cancelling_shows_the_text_that_was_held_back(tiny):
    engine = Engine(tiny, tokenizer=Letters())
    with engine.stream(PROMPT, PARAMS) as stream:
        shown = next(stream).text + next(stream).text
    assert len(shown) == 1 and len(stream.result.text) == 2 and stream.result.text.startswith(shown)


def test_a_request_takes_memory_for_its_own_tokens_and_not_for_the_whole_context(tiny):
    engine = Engine(tiny)
    engine.add(PROMPT, SamplingParams(max_tokens=3))
    engine.step()
    assert [kept.capacity for kept in engine.cache.slots.values()] == [len(PROMPT) + 3]


def test_threads_that_share_an_engine_get_what_they_would_get_alone(tiny):
    prompts = [[n, n + 1, 2 * n] for n in range(8)]
    params = SamplingParams(max_tokens=15, temperature=1.1, seed=3)
    want = [Engine(tiny).generate(prompt, params).output_ids for prompt in prompts]
    engine, got = Engine(tiny, max_requests=3), [None] * len(prompts)

    def work(i):
        if i % 2:
            got[i] = engine.generate(prompts[i], params).output_ids
        else:
            got[i] = [token.id for token in engine.stream(prompts[i], params)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert got == want and is_empty(engine)


def test_an_engine_called_from_within_its_own_step_says_so(tiny):
    engine = Engine(tiny, replace(CPU, attend=lambda *_: engine.generate(OTHER, PARAMS)))
    with pytest.raises(EngineBusy, match="take a second Engine"):
        engine.generate(PROMPT, PARAMS)
    assert is_empty(engine)


@pytest.mark.parametrize("prompt", [np.array(PROMPT), torch.tensor(PROMPT), tuple(PROMPT), [np.int64(i) for i in PROMPT]], ids=type)
def test_ids_of_any_library_are_a_prompt(tiny, prompt):
    want = Engine(tiny).generate(PROMPT, PARAMS).output_ids
    assert Engine(tiny).generate(prompt, PARAMS).output_ids == want
    assert [token.id for token in Engine(tiny).stream(prompt, PARAMS)] == want


@pytest.mark.parametrize("prompts", [np.array([PROMPT, PROMPT]), torch.tensor([PROMPT, PROMPT]), (PROMPT, PROMPT)], ids=type)
def test_a_table_of_ids_is_a_list_of_prompts(tiny, prompts):
    want = Engine(tiny).generate(PROMPT, PARAMS).output_ids
    assert [result.output_ids for result in Engine(tiny).generate(prompts, PARAMS)] == [want, want]


@pytest.mark.parametrize("prompt", [[True, False], np.array([0.5, 1.0]), torch.tensor([1.5]), {"role": "user"}, {1, 2}, [3, "a"], 7])
def test_other_prompts_are_named(tiny, prompt):
    with pytest.raises(TypeError, match="a prompt is a string, a list of messages, or a list of token ids; got"):
        Engine(tiny).stream(prompt)
    with pytest.raises(TypeError, match="a prompt is a string, a list of messages, or a list of token ids; got"):
        Engine(tiny).generate(prompt)


def test_settings_beside_a_list_of_params_are_refused_by_name(tiny):
    with pytest.raises(TypeError, match="params or settings, not both; got params and max_tokens"):
        Engine(tiny).generate([PROMPT], [PARAMS], max_tokens=3)


@pytest.mark.parametrize("params", [{"max_tokens": 3}, 5, [{"max_tokens": 3}], "greedy"], ids=repr)
def test_params_of_another_kind_are_named(tiny, params):
    with pytest.raises(TypeError, match="SamplingParams"):
        Engine(tiny).generate([PROMPT], params)
    with pytest.raises(TypeError, match="SamplingParams"):
        Engine(tiny).stream(PROMPT, params)


def test_params_may_come_one_by_one(tiny):
    each = (SamplingParams(max_tokens=n, temperature=0) for n in (2, 3))
    assert [len(result.output_ids) for result in Engine(tiny).generate([PROMPT, OTHER], each)] == [2, 3]


def test_numbers_of_any_library_are_parameters():
    params = SamplingParams(
        max_tokens=np.int64(3), temperature=np.float32(0.5), top_k=torch.tensor(4), top_p=torch.tensor(0.5), min_p=np.array(0.25),
        seed=np.uint8(7), logprobs=np.int32(2), stop=None,
    )  # fmt: skip
    assert params == SamplingParams(max_tokens=3, temperature=0.5, top_k=4, top_p=0.5, min_p=0.25, seed=7, logprobs=2)
    assert all(type(value) in (int, float, tuple, bool) for value in (params.max_tokens, params.top_p, params.min_p, params.seed))


@pytest.mark.parametrize("name, value", [
    ("temperature", np.array([0.5, 1.0])), ("temperature", "0.5"), ("temperature", None), ("top_p", True), ("max_tokens", np.float64(3)),
    ("max_tokens", np.array([3, 4])), ("seed", np.array([1, 2])), ("repetition_penalty", 1e-39), ("repetition_penalty", 1e39),
    ("stop", 3), ("stop", [None]), ("stop", b"x"),
])  # fmt: skip
def test_other_values_are_named(name, value):
    with pytest.raises(BadSamplingParams, match=name):
        SamplingParams(**{name: value})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("settings", [
    dict(temperature=1e-46), dict(temperature=1e-320), dict(temperature=1e308), dict(temperature=1e-46, top_k=3, top_p=0.5, min_p=0.1),
    dict(repetition_penalty=1e-6), dict(repetition_penalty=1e6, temperature=1e-46),
], ids=str)  # fmt: skip
def test_extreme_settings_choose_a_token_that_may_be_drawn(dtype, settings):
    logits = torch.tensor([1.0, -torch.inf, 30.0, -20.0, 29.0, -torch.inf], dtype=dtype)
    params = SamplingParams(**settings)
    for u in (0.0, 0.5, 1 - 2**-53):
        token = CPU.sample(logits, params, u, [0, 3])
        assert token in (0, 2, 3, 4)
        if params.temperature < 1e-40 and params.repetition_penalty == 1:
            assert token == 2
