"""Lab 08: the learner's `QuantizedCache` and `SlidingWindowCache`, where the engine was asked for one of their kind."""

from __future__ import annotations

from math import gcd

from llmcourse.ops import Parts

from .caches import LearnerCache, a_window, everything, instead_of
from .stage import Stage, Use

QUANTIZED, WINDOW = "08.QuantizedCache", "08.SlidingWindowCache"


def learner_quantized_cache(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """An engine asked for int8 or int4 keeps its tokens in the learner's codes: per token, whatever the spec's scheme."""
    made = answers["QuantizedCache"]

    def wrap(cache) -> LearnerCache:
        scheme, head_dim = cache.scheme, cache.config.head_dim
        new = lambda capacity: made(scheme.bits, gcd(scheme.group, head_dim))  # noqa: E731
        return LearnerCache(cache, new, use, QUANTIZED, everything)

    return instead_of(parts, "quantized", wrap)


def learner_window_cache(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """An engine asked for window:… keeps its tokens in the learner's window."""
    made = answers["SlidingWindowCache"]

    def wrap(cache) -> LearnerCache:
        return LearnerCache(cache, lambda capacity: made(cache.window, cache.n_sink), use, WINDOW, a_window)

    return instead_of(parts, "window", wrap)


STAGES = (
    Stage("quantized cache", ("08.quantize_kv", "08.dequantize_kv", QUANTIZED), learner_quantized_cache),
    Stage("window cache", (WINDOW,), learner_window_cache),
)
