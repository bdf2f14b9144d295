"""Learners' caches behind the engine's interface: one object of theirs for each request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from llmcourse.batch import Batch
from llmcourse.cache import KVCache
from llmcourse.ops import Parts

from ..step_model import tensors_like
from .stage import Use


class LearnerCache(KVCache):
    """The engine's interface over learner's caches. Nothing is found in them beforehand, and nothing is taken back.

    Args:
        cache: the engine's own; it stores nothing, and says what was asked for.
        new: capacity → a learner's cache, with `update(layer, k, v)`.
        exercise: "NN.name", for messages.
        entry: (what the learner's update returned, k, T) → an entry of `kv`; raises ValueError where it cannot be one.
    """

    kind = "learner"

    def __init__(self, cache, new: Callable, use: Use, exercise: str, entry: Callable):
        self.spec, self.bytes_for, self.step_tokens = cache.spec, cache.bytes_for, cache.step_tokens
        self.config, self._dtype, self._device = cache.config, cache.dtype, cache.device
        self._new = use(exercise, new)

        def update(one, layer: int, k: Tensor, v: Tensor, length: int) -> tuple[Tensor, ...]:
            return entry(one.update(layer, k, v), k, length)

        self._update = use(exercise, update)
        self.slots: dict[int, tuple[object, int]] = {}

    def open(self, ids: Sequence[int], capacity: int) -> tuple[int, int]:
        """A new cache of the learner's for a request of at most `capacity` tokens; returns its slot, and 0."""
        slot = next(number for number in range(len(self.slots) + 1) if number not in self.slots)
        with tensors_like(self._dtype, self._device):
            self.slots[slot] = self._new(capacity), capacity
        return slot, 0

    def close(self, slot: int) -> None:
        """Forget a request's cache. Raises KeyError for a slot that is not open."""
        del self.slots[slot]

    def update(self, layer: int, k: Tensor, v: Tensor, batch: Batch) -> list[tuple[Tensor, ...]]:
        """Each request's rows go into its own cache; what that shows them goes to attention."""
        entries = []
        for r, chunk in enumerate(batch.chunks):
            one, capacity = self.slots[chunk.slot]
            if chunk.length > capacity:
                raise ValueError(f"{chunk.length} tokens do not fit into slot {chunk.slot}, opened for {capacity}")
            with torch.device(k.device):  # what the learner's code makes, positions above all, lies beside k
                entries.append(self._update(one, layer, k[batch.rows(r)], v[batch.rows(r)], chunk.length))
        return entries


def everything(returned, k: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """An entry with all of a request's tokens. Fewer would make attention wrong in silence."""
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


def instead_of(parts: Parts, kind: str, wrap: Callable) -> Parts:
    """The table whose `cache` wraps engine's caches of one kind and leaves all others alone.

    A model whose layers have windows of their own keeps the engine's: a learner's cache knows of no layer's window.
    """
    before = parts.cache

    def replaced(cache):
        cache = before(cache)
        return wrap(cache) if cache.kind == kind and not cache.config.windows else cache

    return replace(parts, cache=replaced)
