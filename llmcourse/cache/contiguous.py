"""Contiguous KV cache: one stretch of memory per request, which doubles when it is full, up to the request's capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.batch import Batch
from llmcourse.cache.base import KVCache, window_of, within
from llmcourse.cache.slots import Slots

FIRST_TOKENS = 256  # reserved when a request starts


@dataclass
class Slot:
    """One request's memory: keys and values [L, Hkv, reserved, D] each, and the most tokens that may come."""

    keys: Tensor
    values: Tensor
    capacity: int

    @property
    def reserved(self) -> int:
        """Tokens that fit without another allocation."""
        return self.keys.shape[2]

    def tensors(self) -> tuple[Tensor, Tensor]:
        """All that it keeps."""
        return self.keys, self.values


class ContiguousCache(Slots):
    """Keys and values of every layer for several requests at once.

    Each request has a slot: two tensors of shape [L, Hkv, reserved, D]. Heads come before tokens, so that the keys of
    one head lie together: decode reads them once, in order. A slot starts with room for `first_tokens`. What does not fit
    moves it into twice the room (or as much as a long prompt needs), never more than the request's capacity. Between two
    moves it stays where it is, and a step writes its own tokens and nothing else. Since the room doubles, all moves
    together copy each token less than twice.

    Args:
        config: n_layers, n_kv_heads and head_dim are read.
        first_tokens: room that a request starts with, in tokens. One with a smaller capacity gets that.
    """

    kind, can_truncate = "contiguous", True

    def __init__(
        self, config, dtype: torch.dtype, device: torch.device | str, first_tokens: int = FIRST_TOKENS
    ):
        super().__init__(config, dtype, device)
        self.first_tokens = first_tokens

    def truncate(self, slot: int, n: int) -> None:
        """Forget all tokens after the first n: what comes next is written over them."""

    def _slot(self, capacity: int) -> Slot:
        return Slot(*self._room(0), capacity)

    def _first_room(self, n_known: int, capacity: int) -> int:
        return max(n_known, min(capacity, self.first_tokens))

    def _grow(self, slot: Slot, needed: int) -> None:
        """Move a slot that is full into room for `needed` tokens and as many again as it had, within its capacity."""
        have = slot.reserved
        if needed <= have:
            return
        keys, values = self._room(min(slot.capacity, max(needed, 2 * have)))
        keys[:, :, :have], values[:, :, :have] = slot.keys, slot.values
        slot.keys, slot.values = keys, values

    def _room(self, n_tokens: int) -> list[Tensor]:
        """Memory for keys and for values, [L, Hkv, n_tokens, their head size] each."""
        config = self.config
        return [
            torch.empty(config.n_layers, config.n_kv_heads, n_tokens, D, dtype=self.dtype, device=self.device)
            for D in (config.head_dim, config.value_dim)
        ]

    def _step(
        self, slot: Slot, layer: int, k: Tensor, v: Tensor, n_past: int, window: int | None
    ) -> tuple[Tensor, ...]:
        """Write one request's keys and values of one layer; return views of all that it has there."""
        stop = n_past + len(k)
        slot.keys[layer, :, n_past:stop] = k.transpose(0, 1)
        slot.values[layer, :, n_past:stop] = v.transpose(0, 1)
        seen = slot.keys[layer, :, :stop].transpose(0, 1), slot.values[layer, :, :stop].transpose(0, 1)
        return within(seen, len(k), window)

    def bytes_for(self, n_tokens: int) -> int:
        """Bytes of keys and values for n tokens of one request, over all layers."""
        config = self.config
        per_token = config.n_layers * config.n_kv_heads * (config.head_dim + config.value_dim)
        return per_token * n_tokens * self.dtype.itemsize


class NoCache(KVCache):
    """Keeps nothing: every step must bring all tokens of its requests again. The slow path that a cache is tested against.

    config: what says which layers have a window of their own; without it, none has.
    """

    kind, keeps_past = "none", False

    def __init__(self, config=None, dtype=None, device=None):
        self.config = config

    def open(self, ids: Sequence[int], capacity: int) -> tuple[int, int]:
        """Slot 0: there is nothing to keep apart."""
        return 0, 0

    def close(self, slot: int) -> None:
        """Nothing to give back."""

    def bytes_for(self, n_tokens: int) -> int:
        """0: no keys and values are kept."""
        return 0

    def update(
        self, layer: int, k: Float[Tensor, "n Hkv D"], v: Float[Tensor, "n Hkv D"], batch: Batch
    ) -> list[tuple[Tensor, ...]]:
        """Return each request's keys and values of this step, [T, Hkv, D] each.

        Raises ValueError when a request has a past, which nobody kept.
        """
        window, entries = window_of(self.config, layer) if self.config else None, []
        for r, chunk in enumerate(batch.chunks):
            if chunk.n_past:
                n = len(chunk.ids)
                raise ValueError(f"without a cache all {chunk.length} tokens must be computed, got the last {n}")
            entries.append(within((k[batch.rows(r)], v[batch.rows(r)]), len(chunk.ids), window))
        return entries
