"""Choosing a token without waking PyTorch's threads.

They wait by spinning, on the very cores that the team of threads needs next: a step after a draw took twice as long. So the
greedy choice is one pass of NumPy, and every other draw runs on one thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.errors import NonFiniteLogits
from llmcourse.ops.sampling import sample as draw


def sample(logits: Float[Tensor, "V"], params, u: float, previous_ids: Sequence[int]) -> int:
    """As `ops.sampling.sample`, on one thread; greedy without a penalty in one pass. Raises NonFiniteLogits."""
    if params.temperature == 0 and params.repetition_penalty == 1.0:
        values = logits.numpy()
        choice = int(values.argmax())  # of equal ones the first; a NaN counts as the largest
        top = float(values[choice])
        if not math.isfinite(top):
            raise NonFiniteLogits(f"the largest of {len(logits):,} logits is {top}: nothing can be chosen from them")
        return choice
    with one_thread():
        return draw(logits, params, u, previous_ids)


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch's operations inside run on the calling thread alone."""
    n = torch.get_num_threads()
    if n == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n)
