"""What a decode step does, counted: nothing but attention grows with the context, and no layer waits for the device."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse import Engine, SamplingParams
from llmcourse.ops import CPU, FUSED, REFERENCE
from llmcourse.ops.layer import layer
from tests.counting import HOST_READS, Counting
from tests.random_model import TINY, random_model

LONG = replace(TINY, context=4096)
GREEDY = SamplingParams(max_tokens=5, temperature=0)


@pytest.fixture(scope="module")
def long():
    return random_model(config=LONG)


def decode_step(model, n_prompt, parts):
    """The operations of one decode step after n_prompt tokens, those of `attend` left out."""
    counting = Counting()

    def attend(*args):
        counting.paused = True
        try:
            return parts.attend(*args)
        finally:
            counting.paused = False

    engine = Engine(model, replace(parts, attend=attend))
    engine.cache.first_tokens = LONG.context
    engine.add([7] * n_prompt, GREEDY)
    engine.step()
    with counting:
        engine.step()
    return counting.calls


@pytest.mark.parametrize("parts", [REFERENCE, CPU], ids=["reference", "cpu"])
def test_nothing_but_attention_grows_with_the_context(long, parts):
    short = decode_step(long, 3, parts)
    assert len(short) > 100 and short == decode_step(long, 300, parts) == decode_step(long, 3000, parts)


@pytest.mark.parametrize("parts", [REFERENCE, CPU], ids=["reference", "cpu"])
def test_without_a_cache_the_work_does_grow(long, parts):
    """The negative control: the same count must see what a cache saves."""
    written = []
    for n_prompt in (3, 300):
        engine = Engine(long, parts, cache="none")
        engine.add([7] * n_prompt, GREEDY)
        engine.step()
        with Counting() as counting:
            engine.step()
        written.append(sum(n for _, n in counting.calls))
    assert written[1] > 20 * written[0]


@pytest.mark.parametrize("parts", [REFERENCE, CPU], ids=["reference", "cpu"])
def test_layers_read_nothing_back_to_the_host(long, parts):
    """Counted between the first layer and the last: reading one value would stall a card at every layer."""
    reads = []

    def watched(stage, function):
        def call(*args, **kwargs):
            with Counting() as counting:
                result = function(*args, **kwargs)
            reads.extend(name for name, _ in counting.calls if name in HOST_READS)
            return result

        return function if stage == "sample" else call

    engine = Engine(long, parts.wrapped(watched))
    update = engine.cache.update
    engine.cache.update = watched("cache", update)
    engine.generate([5, 9, 2], GREEDY)
    assert reads == []


@pytest.mark.gpu
def test_layers_never_wait_for_the_card():
    """CUDA's own guard: inside it every synchronising call is an error. The embedding and the sampler are outside."""
    from tests.engine.test_gpu import moved

    model = moved(random_model(config=LONG), "cuda")

    def guarded(*args):
        torch.cuda.set_sync_debug_mode("error")
        try:
            return layer(*args)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    guarded_ids = Engine(model, replace(FUSED, layer=guarded)).generate([5, 9, 2], GREEDY).output_ids
    assert guarded_ids == Engine(model).generate([5, 9, 2], GREEDY).output_ids
