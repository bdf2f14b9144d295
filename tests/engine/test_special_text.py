"""Special tokens that a model emits: in the ids always, in the text only on request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmcourse.engine.engine import Engine
from llmcourse.ops import CPU


@pytest.fixture(scope="module")
def emitted(model, tokenizer):
    """The ids, and a run of the real model in which they are dictated."""
    ids = [1, *tokenizer.encode("Hi "), 2, *tokenizer.encode("there")]

    def dictated(logits, params, u, previous):
        return ids[len(previous) - 1]

    def run(stream: bool, **settings):
        engine = Engine(model, parts=replace(CPU, sample=dictated), tokenizer=tokenizer)
        settings = dict(max_tokens=len(ids), ignore_eos=True, **settings)
        if stream:
            with engine.stream([5], **settings) as tokens:
                return "".join(token.text for token in tokens), tokens.result.output_ids
        result = engine.generate([5], **settings)
        return result.text, result.output_ids

    return ids, run


@pytest.mark.parametrize("stream", [False, True])
def test_special_tokens_are_in_the_ids_and_not_in_the_text(emitted, stream):
    ids, run = emitted
    assert run(stream) == ("Hi there", ids)


@pytest.mark.parametrize("stream", [False, True])
def test_skip_special_tokens_false_shows_them(emitted, stream):
    ids, run = emitted
    assert run(stream, skip_special_tokens=False) == ("<|im_start|>Hi <|im_end|>there", ids)
