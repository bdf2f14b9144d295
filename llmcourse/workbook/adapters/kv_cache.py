"""Lab 07: the learner's `PreallocatedCache`, one for each request, where the engine was asked for a contiguous cache."""

from __future__ import annotations

from llmcourse.ops import Parts

from .caches import LearnerCache, everything, instead_of
from .stage import Stage, Use

EXERCISE = "07.PreallocatedCache"


def learner_cache(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """An engine that was asked for "contiguous" keeps its keys and values in the learner's caches; others keep theirs."""
    made = answers["PreallocatedCache"]

    def wrap(cache) -> LearnerCache:
        config = cache.config

        def new(capacity: int):
            return made(config.n_layers, config.n_kv_heads, config.head_dim, capacity)

        return LearnerCache(cache, new, use, EXERCISE, everything)

    return instead_of(parts, "contiguous", wrap)


STAGES = (Stage("cache", (EXERCISE,), learner_cache),)
