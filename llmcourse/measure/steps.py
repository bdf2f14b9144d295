"""What one new token costs at a given length, with a cache and without; and what that means for a whole text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

import torch

from llmcourse.batch import Batch, Chunk
from llmcourse.cache import ContiguousCache, NoCache
from llmcourse.measure.clock import median_time
from llmcourse.ops import Limits, Parts, default_parts

ANY_ID = 1


def step_seconds(
    model, length: int, *, cached: bool, parts: Parts | None = None, runs: int = 3, warm_up: int = 1
) -> float:
    """Seconds until the model has the logits after the last of `length` tokens: the median of several runs.

    Args:
        cached: the keys and values of all but the last token are in a cache, and that token alone goes through the model;
            otherwise all of them do.
        runs, warm_up: how many runs count, and how many before them do not.

    The cache is filled with random numbers rather than by a prefill of `length` tokens: a step takes the same time whatever
    the numbers are.
    """
    parts = parts or default_parts(model.device.type)
    if cached:
        cache = _filled(model, length)
        chunks = [Chunk([ANY_ID], n_past=length - 1)]
    else:
        cache, chunks = NoCache(model.config), [Chunk([ANY_ID] * length)]
    compute = model.prepared(parts, cache, Limits(1, length, model.config.context))
    batch = Batch.of(chunks, cache, model.device)
    return median_time(lambda: compute(batch), model.device, runs, warm_up)


def _filled(model, length: int) -> ContiguousCache:
    """A cache that holds `length` − 1 tokens in slot 0, and has room for one more."""
    config = model.config
    cache = ContiguousCache(config, model.dtype, model.device, first_tokens=length)
    cache.open([ANY_ID] * length, length)
    if length > 1:
        batch = Batch.of([Chunk([ANY_ID] * (length - 1))], cache, model.device)
        shape = (length - 1, config.n_kv_heads, config.head_dim)
        for layer in range(config.n_layers):
            k, v = (torch.randn(shape, device=model.device).to(model.dtype) for _ in range(2))
            cache.update(layer, k, v, batch)
    return cache


def at_length(seconds: Mapping[int, float], length: int) -> float:
    """Seconds of a step at any length, on the straight line between the measured ones (outside them: the nearest).

    seconds: length → seconds, as measured.
    """
    known = sorted(seconds)
    after = bisect_right(known, length)
    if after == 0 or after == len(known):
        return seconds[known[max(0, after - 1)]]
    low, high = known[after - 1], known[after]
    share = (length - low) / (high - low)
    return seconds[low] + share * (seconds[high] - seconds[low])


def first_length(slow: Mapping[int, float], fast: Mapping[int, float], factor: float, *, whole: bool = False) -> int | None:
    """The first length at which `slow` takes `factor` times as long as `fast`; None where it never does.

    Args:
        slow, fast: length → seconds of a step, at the same lengths.
        whole: compare all steps up to that length, a whole text from its first token on, and not that one step alone.
    """
    slow_sum = fast_sum = 0.0
    for length in range(1, max(slow) + 1):
        slow_now, fast_now = at_length(slow, length), at_length(fast, length)
        slow_sum, fast_sum = slow_sum + slow_now, fast_sum + fast_now
        if (slow_sum >= factor * fast_sum) if whole else (slow_now >= factor * fast_now):
            return length
    return None


def text_seconds(seconds: Mapping[int, float], length: int) -> float:
    """Seconds of all steps from the first token to this length."""
    return sum(at_length(seconds, n) for n in range(1, length + 1))
