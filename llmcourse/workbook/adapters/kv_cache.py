"""Lab 07: the learner's `PreallocatedCache`, one for each request, where the engine was asked for a contiguous cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor

from llmcourse.batch import Batch
from llmcourse.ops import Parts

from ..step_model import tensors_like
from .stage import Stage, Use

EXERCISE = "07.PreallocatedCache"


def learner_cache(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """An engine that was asked for "contiguous" keeps its keys and values in the learner's caches; others keep theirs."""
    before, made = parts.cache, answers["PreallocatedCache"]

    def wrap(cache):
        cache = before(cache)
        return LearnerCache(cache, made, use) if getattr(cache, "spec", None) == "contiguous" else cache

    return replace(parts, cache=wrap)


class LearnerCache:
    """The engine's interface (open, update, close) over learner's caches: one object for each slot.

    Args:
        cache: the engine's own, which says config, dtype and device; it stores nothing.
        made: the learner's class.
    """

    keeps_past = True

    def __init__(self, cache, made: Callable, use: Use):
        self.spec, self.config, self.dtype, self.device = cache.spec, cache.config, cache.dtype, cache.device
        self.step_tokens, self.bytes_for = cache.step_tokens, cache.bytes_for
        self._made, self._use = use(EXERCISE, made), use
        self.slots: dict[int, Callable] = {}

    def open(self, capacity: int) -> int:
        """A new cache of the learner's for a request of at most `capacity` tokens; returns its slot."""
        config = self.config
        slot = next(number for number in range(len(self.slots) + 1) if number not in self.slots)
        with tensors_like(self.dtype, self.device):
            one = self._made(config.n_layers, config.n_kv_heads, config.head_dim, capacity)
        self.slots[slot] = self._use(EXERCISE, _checked(one))
        return slot

    def close(self, slot: int) -> None:
        """Forget a request's cache. Raises KeyError for a slot that is not open."""
        del self.slots[slot]

    def update(self, layer: int, k: Tensor, v: Tensor, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """Each request's rows go into its own cache; what that returns goes to attention."""
        return [
            self.slots[slot](layer, k[batch.rows(r)], v[batch.rows(r)], batch.lengths[r])
            for r, slot in enumerate(batch.slots)
        ]


def _checked(cache) -> Callable:
    """The learner's `update`. It must return as many tokens as the request has, or attention would be wrong in silence."""

    def update(layer: int, k: Tensor, v: Tensor, length: int) -> tuple[Tensor, Tensor]:
        K, V = cache.update(layer, k, v)
        want = (length, *k.shape[1:])
        if (tuple(K.shape), tuple(V.shape)) != (want, want):
            raise ValueError(f"update returned {list(K.shape)} and {list(V.shape)}, want {list(want)} twice")
        return K, V

    return update


STAGES = (Stage("cache", (EXERCISE,), learner_cache),)
