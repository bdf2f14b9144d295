"""Sliding-window KV cache: the first few tokens and the newest ones; the rest is forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from llmcourse.cache.slots import Slots


class SlidingWindowCache(Slots):
    """Keys and values of each request's first `n_sink` tokens and of its newest `window` tokens.

    The token at position p sees position j ≤ p if j > p − window or j < n_sink: itself, the window − 1 tokens before it,
    and the sinks, which are counted apart from the window. Keys keep the rotation of their own position.

    The newest tokens live in a ring: position p overwrites position p − window, and nothing is ever moved. So memory
    stops growing at window + n_sink tokens. A token cannot be taken back.

    Args:
        config: n_layers, n_kv_heads and head_dim are read.
        window: at least 1.
        n_sink: 0 or more.

    Source: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks" (there the positions are those
    in the cache; here they are those in the text).
    """

    kind = "window"
    step_tokens = 512  # a step of n tokens meets n + window + n_sink keys: short steps keep that small

    def __init__(self, config, dtype: torch.dtype, device: torch.device | str, window: int, n_sink: int = 0):
        super().__init__(config, dtype, device)
        self.window, self.n_sink = window, n_sink

    def bytes_for(self, n_tokens: int) -> int:
        """Bytes of keys and values kept of a request of n tokens, over all layers."""
        config, held = self.config, min(n_tokens, self.window + self.n_sink)
        return config.n_layers * config.n_kv_heads * (config.head_dim + config.value_dim) * held * self.dtype.itemsize

    def _first_room(self, n_known: int, capacity: int) -> int:
        return capacity  # of which the window and the sinks are all that is ever kept

    def _slot(self, capacity: int) -> Ring:
        config, held = self.config, min(capacity, self.window + self.n_sink)
        keys, values = (
            torch.empty(config.n_layers, config.n_kv_heads, held, D, dtype=self.dtype, device=self.device)
            for D in (config.head_dim, config.value_dim)
        )
        return Ring(keys, values, capacity)

    def _step(
        self, ring: Ring, layer: int, k: Tensor, v: Tensor, n_past: int, window: int | None
    ) -> tuple[Tensor, ...]:
        """Write what stays of one request's step; return (K, V), or (K, V, visible) where rows see different keys."""
        keys, values = ring.keys[layer].transpose(0, 1), ring.values[layer].transpose(0, 1)
        n, total = len(k), n_past + len(k)
        # Of the new positions, those that are still kept once the step is done: the rows to write, and where.
        stays = kept_positions(total, self.window, self.n_sink)
        stays = stays[stays >= n_past]
        place, rows = self._places(stays), (stays - n_past).to(k.device)
        if window is None and (n == 1 or total <= self.window + self.n_sink):
            # What is overwritten, no row may see: once written, the storage is the answer. Decode needs no order.
            keys[place], values[place] = k[rows], v[rows]
            return keys[:total], values[:total]
        # Several rows see more than is kept: the past as it is now, in order, with all new tokens behind it. It is read
        # before anything is written over it.
        past = self._places(kept_positions(n_past, self.window, self.n_sink))
        visible = window_mask(n_past, n, self.window, self.n_sink, window).to(k.device)
        entry = torch.cat([keys[past], k]), torch.cat([values[past], v]), visible
        keys[place], values[place] = k[rows], v[rows]
        return entry

    def _places(self, positions: Int[Tensor, "m"]) -> Int[Tensor, "m"]:
        """Where positions are stored: sinks first, each in its own place, then the ring, which the others go round."""
        ring = self.n_sink + (positions - self.n_sink) % self.window
        return torch.where(positions < self.n_sink, positions, ring).to(self.device)


@dataclass
class Ring:
    """One request's keys and values, each [L, Hkv, window + n_sink, D] (fewer where its capacity is smaller)."""

    keys: Tensor
    values: Tensor
    capacity: int

    @property
    def reserved(self) -> int:
        """All tokens that may come: a ring never grows."""
        return self.capacity

    def tensors(self) -> tuple[Tensor, Tensor]:
        """All that is held."""
        return self.keys, self.values


def kept_positions(length: int, window: int, n_sink: int) -> Int[Tensor, "m"]:
    """The positions that a request of `length` tokens still has: sinks, then the newest, in order."""
    newest = max(min(n_sink, length), length - window)
    return torch.cat([torch.arange(min(n_sink, length)), torch.arange(newest, length)])


@lru_cache(maxsize=8)  # a step asks for the same mask in every layer
def window_mask(n_past: int, n: int, window: int, n_sink: int, of_layer: int | None = None) -> Bool[Tensor, "n m"]:
    """Which keys each of n new tokens sees: columns are the positions kept of the first n_past, then the n new ones.

    of_layer: the layer's own window, where it has one; its sinks lie behind it like any other token.
    """
    new = torch.arange(n_past, n_past + n)
    key, query = torch.cat([kept_positions(n_past, window, n_sink), new]), new[:, None]
    visible = (key <= query) & ((key > query - window) | (key < n_sink))
    return visible if of_layer is None else visible & (key > query - of_layer)
