"""The engine's behaviour around the numbers: forms of prompts, endings, streams, errors, clean-up."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from llmcourse import Engine, SamplingParams
from llmcourse.errors import BadSamplingParams, NonFiniteLogits, PromptTooLong, TokenizerError
from llmcourse.ops import CPU
from tests.random_model import TINY, random_model

PROMPT = [5, 9, 2, 77, 31]


@pytest.fixture(scope="module")
def tiny():
    return random_model()


def test_one_prompt_gives_one_result_and_a_list_gives_a_list(tiny):
    engine = Engine(tiny)
    one = engine.generate(PROMPT, max_tokens=3, temperature=0)
    many = engine.generate([PROMPT, [1, 2]], max_tokens=3, temperature=0)
    assert one.output_ids == many[0].output_ids and len(many) == 2
    assert engine.generate([], max_tokens=3) == []


def test_times_are_recorded_for_every_token(tiny):
    result = Engine(tiny).generate(PROMPT, max_tokens=7)
    assert result.ttft_s > 0 and len(result.itl_s) == 6 and all(gap > 0 for gap in result.itl_s)
    assert result.tokens_per_s == pytest.approx(7 / (result.ttft_s + sum(result.itl_s)))


def test_any_of_several_eos_ids_ends_the_output_and_ignore_eos_does_not(tiny):
    ids = Engine(tiny).generate(PROMPT, max_tokens=30, temperature=0).output_ids
    stopper = ids[12]
    first = ids.index(stopper)
    model = random_model(config=replace(TINY, eos_ids=(96, stopper)))
    result = Engine(model).generate(PROMPT, max_tokens=30, temperature=0)
    assert result.output_ids == ids[: first + 1] and result.finish_reason == "stop"
    result = Engine(model).generate(PROMPT, max_tokens=30, temperature=0, ignore_eos=True)
    assert result.output_ids == ids and result.finish_reason == "length"


def test_the_end_of_the_context_ends_the_output(tiny):
    result = Engine(tiny).generate([1] * 60, max_tokens=100, temperature=0)
    assert len(result.output_ids) == TINY.context - 60 and result.finish_reason == "length"


def test_a_prompt_without_room_is_refused_with_both_numbers(tiny):
    with pytest.raises(PromptTooLong, match="64 tokens do not fit into the context of tiny, 64 tokens and leave no room"):
        Engine(tiny).generate([1] * 64, max_tokens=1)


@pytest.mark.parametrize("prompt, message", [([], "no tokens"), ([3, 97], "token id 97 is outside"), ([-1], "token id -1")])
def test_ids_that_the_model_cannot_take_are_refused(tiny, prompt, message):
    engine = Engine(tiny)
    with pytest.raises(ValueError, match=message):
        engine.stream(prompt)
    assert engine.scheduler.n_unfinished == 0


def test_text_without_a_tokenizer_is_refused(tiny):
    with pytest.raises(TokenizerError, match="no tokenizer"):
        Engine(tiny).generate("Hello")
    with pytest.raises(TokenizerError, match="stop strings"):
        Engine(tiny).generate(PROMPT, stop="x")


@pytest.mark.parametrize("prompt", [3.5, None, [1.5]])
def test_other_prompts_are_refused_by_type(tiny, prompt):
    with pytest.raises(TypeError):
        Engine(tiny).stream(prompt)


def test_params_must_be_one_for_all_or_one_for_each(tiny):
    with pytest.raises(ValueError, match="1 SamplingParams for 2 prompts"):
        Engine(tiny).generate([PROMPT, PROMPT], [SamplingParams()])
    with pytest.raises(BadSamplingParams, match="temperature"):
        Engine(tiny).generate(PROMPT, temperature=-1)
    with pytest.raises(TypeError, match="params or settings"):
        Engine(tiny).generate(PROMPT, SamplingParams(), temperature=0)


def test_equal_prompts_that_share_a_seed_draw_different_noise(tiny):
    results = Engine(tiny).generate([PROMPT] * 3, max_tokens=20, temperature=1.5, seed=4)
    assert len({tuple(result.output_ids) for result in results}) == 3
    again = Engine(tiny).generate([PROMPT] * 3, max_tokens=20, temperature=1.5, seed=4)
    assert [result.output_ids for result in results] == [result.output_ids for result in again]


def test_logprobs_are_those_of_the_model_before_any_filter(tiny):
    """Oracle: log-softmax of the model's own logits; float64, bound 1e-9."""
    result = Engine(tiny).generate(PROMPT, max_tokens=4, temperature=0.3, top_k=2, seed=1, logprobs=3)
    scores = tiny(PROMPT + result.output_ids[:-1])[len(PROMPT) - 1 :].log_softmax(-1)
    for row, token, entry in zip(scores, result.output_ids, result.logprobs):
        assert entry.chosen == pytest.approx(row[token].item(), abs=1e-9)
        assert [i for i, _ in entry.top] == row.topk(3).indices.tolist()
        assert [value for _, value in entry.top] == pytest.approx(row.topk(3).values.tolist(), abs=1e-9)


def test_a_stream_gives_the_tokens_of_generate_one_by_one(tiny):
    params = SamplingParams(max_tokens=9, temperature=0.8, seed=3)
    stream = Engine(tiny).stream(PROMPT, params)
    tokens = list(stream)
    assert [token.id for token in tokens] == Engine(tiny).generate(PROMPT, params).output_ids
    assert stream.result.finish_reason == "length" and stream.result.ttft_s == tokens[0].seconds
    assert stream.result.itl_s == [token.seconds for token in tokens[1:]]


def test_leaving_a_stream_early_frees_its_memory_and_keeps_what_there_is(tiny):
    engine = Engine(tiny)
    with engine.stream(PROMPT, max_tokens=50) as stream:
        next(stream), next(stream)
    assert stream.result.finish_reason == "cancelled" and len(stream.result.output_ids) == 2
    assert engine.scheduler.n_unfinished == 0 and not engine.cache.slots
    assert list(stream) == []


def test_two_streams_can_be_read_in_turns(tiny):
    engine = Engine(tiny)
    params = SamplingParams(max_tokens=6, temperature=0)
    first, second = engine.stream(PROMPT, params), engine.stream([1, 2, 3], params)
    pairs = list(zip(first, second))
    alone = [Engine(tiny).generate(prompt, params).output_ids for prompt in (PROMPT, [1, 2, 3])]
    assert [[token.id for token in side] for side in zip(*pairs)] == alone


@pytest.mark.parametrize("temperature", [0, 1])
def test_nan_logits_name_the_request_and_leave_the_engine_clean(tiny, temperature):
    def broken(x, weight, eps):
        return CPU.rms_norm(x, weight, eps) * math.nan

    engine = Engine(tiny, replace(CPU, rms_norm=broken))
    with pytest.raises(NonFiniteLogits, match=r"request with 5 prompt tokens.*position 5"):
        engine.generate([PROMPT, [1, 2]], temperature=temperature)
    assert engine.scheduler.n_unfinished == 0 and not engine.cache.slots


def test_stages_are_called_as_often_as_the_model_has_layers(tiny):
    parts, calls = CPU.counted()
    Engine(tiny, parts).generate(PROMPT, max_tokens=4)
    steps, L = 4, TINY.n_layers
    assert calls == {
        "embed": steps, "rope_angles": steps, "sample": steps, "attend": steps * L, "swiglu": steps * L,
        "rope": steps * L * 2, "rms_norm": steps * (2 * L + 1), "linear": steps * (7 * L + 1),
    }  # fmt: skip


def test_unknown_caches_and_pieces_without_a_cache_are_refused(tiny):
    with pytest.raises(ValueError, match="no cache; the forms are contiguous, none"):
        Engine(tiny, cache="paged?")
    with pytest.raises(ValueError, match="without a cache"):
        Engine(tiny, cache="none", max_step_tokens=3)


def test_the_model_alone_gives_logits_of_every_position(tiny):
    logits = tiny(PROMPT)
    assert logits.shape == (5, TINY.vocab_size) and logits.dtype == torch.float64
    torch.testing.assert_close(tiny(torch.tensor(PROMPT)), logits, rtol=0, atol=0)
