"""Probes of the small lab with tensors."""

from __future__ import annotations

from llmcourse import given
from llmcourse.checks import exercise, probe

exercise("scores", hints=("a", "b", "c"), forbids=("torch.nn.functional.scaled_dot_product_attention",))


@probe("scores", hint="Scale by the square root of the head size.")
def scale(answer, rng):
    return answer.scores(rng.normal(3, 8), rng.normal(5, 8))


@probe("scores", hidden=True, hint="Large enough to be computed by several threads, where there are several.")
def large(answer, rng):
    return answer.scores(rng.normal(300, 256), rng.normal(400, 256))[:, ::50]


@probe("scores", hidden=True, hint="The number type stays, and an earlier lab's piece is there.")
def double_precision(answer, rng):
    return answer.scores(rng.normal(2, 6).double(), rng.normal(4, 6).double() * given.twice([1])[0])
