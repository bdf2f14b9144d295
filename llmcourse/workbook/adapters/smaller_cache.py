"""Lab 08: the learner's `QuantizedCache` and `SlidingWindowCache`, where the engine was asked for one of their kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd

import torch
from torch import Tensor

from llmcourse.batch import Batch
from llmcourse.cache import QuantizedCache, SlidingWindowCache
from llmcourse.ops import Parts

from .stage import Stage, Use

QUANTIZED, WINDOW = "08.QuantizedCache", "08.SlidingWindowCache"


def learner_quantized_cache(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """An engine asked for int8 or int4 keeps its tokens in the learner's codes: per token, whatever the spec's scheme."""
    made = use(QUANTIZED, answers["QuantizedCache"])

    def new(cache: QuantizedCache):
        scheme = cache.scheme
        return made(scheme.bits, gcd(scheme.group, cache.config.head_dim))

    return _where(parts, QuantizedCache, lambda cache: LearnerSlots(cache, lambda: new(cache), use, QUANTIZED, everything))


def learner_window_cache(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """An engine asked for window:… keeps its tokens in the learner's window."""
    made = use(WINDOW, answers["SlidingWindowCache"])

    def new(cache: SlidingWindowCache):
        return made(cache.window, cache.n_sink)

    return _where(parts, SlidingWindowCache, lambda cache: LearnerSlots(cache, lambda: new(cache), use, WINDOW, a_window))


class LearnerSlots:
    """The engine's interface (open, update, close) over learner's caches: one object for each request.

    Args:
        cache: the engine's own; it stores nothing, and says what was asked for.
        new: makes a learner's cache.
        exercise: "NN.name", for messages.
        entry: (what the learner's update returned, rows, k, T) → an entry of `kv`; raises ValueError where it cannot be one.
    """

    keeps_past = True

    def __init__(self, cache, new: Callable, use: Use, exercise: str, entry: Callable):
        self.spec, self.bytes_for, self.step_tokens = cache.spec, cache.bytes_for, cache.step_tokens
        self._device, self._new = cache.device, new

        def update(one, layer: int, k: Tensor, v: Tensor, length: int) -> tuple[Tensor, ...]:
            return entry(one.update(layer, k, v), k, length)

        self._update = use(exercise, update)
        self.slots: dict[int, tuple[object, int]] = {}

    def open(self, capacity: int) -> int:
        """A new cache of the learner's for a request of at most `capacity` tokens; returns its slot."""
        slot = next(number for number in range(len(self.slots) + 1) if number not in self.slots)
        self.slots[slot] = self._new(), capacity
        return slot

    def close(self, slot: int) -> None:
        """Forget a request's cache. Raises KeyError for a slot that is not open."""
        del self.slots[slot]

    def update(self, layer: int, k: Tensor, v: Tensor, batch: Batch) -> list[tuple[Tensor, ...]]:
        """Each request's rows go into its own cache; what that shows them goes to attention."""
        entries = []
        for r, slot in enumerate(batch.slots):
            one, capacity = self.slots[slot]
            if batch.lengths[r] > capacity:
                raise ValueError(f"{batch.lengths[r]} tokens do not fit into slot {slot}, opened for {capacity}")
            with torch.device(self._device):  # what the learner's code makes, positions above all, lies beside k
                entries.append(self._update(one, layer, k[batch.rows(r)], v[batch.rows(r)], batch.lengths[r]))
        return entries


def everything(returned, k: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """An entry with all of a request's tokens."""
    K, V = returned
    want = (length, *k.shape[1:])
    if (tuple(K.shape), tuple(V.shape)) != (want, want):
        raise ValueError(f"update returned {list(K.shape)} and {list(V.shape)}, want {list(want)} twice")
    return K.to(k.dtype), V.to(k.dtype)


def a_window(returned, k: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """An entry with those of a request's tokens that its window shows."""
    K, V, visible = returned
    n, m = len(k), len(K)
    if (tuple(K.shape), tuple(V.shape), tuple(visible.shape)) != ((m, *k.shape[1:]), (m, *k.shape[1:]), (n, m)):
        raise ValueError(f"update returned {list(K.shape)}, {list(V.shape)} and {list(visible.shape)}; want "
                         f"[m, Hkv, D] twice and [n, m] with n = {n}, Hkv = {k.shape[1]}, D = {k.shape[2]}")
    if not visible.any(1).all():
        raise ValueError("a row of visible is all False: every token sees at least itself")
    return K, V, visible


def _where(parts: Parts, kind: type, wrap: Callable) -> Parts:
    """The table whose `cache` wraps engine's caches of one kind and leaves all others alone."""
    before = parts.cache

    def replaced(cache):
        cache = before(cache)
        return wrap(cache) if isinstance(cache, kind) else cache

    return replace(parts, cache=replaced)


STAGES = (
    Stage("quantized cache", ("08.quantize_kv", "08.dequantize_kv", QUANTIZED), learner_quantized_cache),
    Stage("window cache", (WINDOW,), learner_window_cache),
)
