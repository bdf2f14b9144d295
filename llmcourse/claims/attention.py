"""Statements of lesson 03."""

from __future__ import annotations

import math

from .common import engine, english
from .ledger import CORRECTED, FAILS, HOLDS, Found, claim

PAGE = 192  # tokens
APART = 1.2  # times the perplexity; see `because`


@claim(
    "C07", "the scores of attention are divided by the square root of the hidden dimension",
    lessons=("03",), expected=f"the model's perplexity on a page is {APART} times lower with √(hidden dimension) than with √(head size)",
    because=f"the surprise at a token spreads by about 2.7 nats, so a mean over {PAGE} of them is good to 2.7 ÷ √{PAGE} "
            f"= 0.19, and a perplexity to e^0.19 = {APART} times; two that are nearer tell nothing",
    how=f"default model, perplexity of {PAGE} tokens of English with all scores divided by either root",
)  # fmt: skip
def scores_are_divided_by_the_root_of_the_hidden_dimension() -> Found:
    config = engine().model.config
    ids = engine().tokenizer.encode(english())[:PAGE]
    by_head, by_width = (perplexity(ids, size) for size in (config.head_dim, config.width))
    measured = f"perplexity {by_head:.1f} with √{config.head_dim}, {by_width:.1f} with √{config.width}"
    return judge(measured, by_head, by_width)


def perplexity(ids: list[int], size: int) -> float:
    """Of a text, for the default model with all its scores divided by √size."""
    from llmcourse.workbook.attention_maps import watch_attention

    logprobs = watch_attention(engine().model, ids, scale=1 / math.sqrt(size)).logits.log_softmax(-1)
    return math.exp(-logprobs[range(len(ids) - 1), ids[1:]].mean())


def judge(measured: str, by_head: float, by_width: float) -> Found:
    """The statement holds where the width's root predicts better; no verdict where nothing depends on the root."""
    if by_head > APART * by_width:
        return Found(measured, HOLDS)
    if not by_width >= APART * by_head:
        return Found(measured, FAILS, "the two roots cannot be told apart by this model")
    return Found(measured, CORRECTED, "by the square root of the head size: a score is a sum of that many products")
