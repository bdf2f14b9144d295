"""Contiguous KV cache: one stretch of memory per request, which doubles when it is full, up to the request's capacity."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.batch import Batch
from llmcourse.cache.slots import Slots
from llmcourse.errors import OutOfMemory

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

    def __init__(
        self, config, dtype: torch.dtype, device: torch.device | str, first_tokens: int = FIRST_TOKENS
    ):
        super().__init__(config, dtype, device)
        self.first_tokens = first_tokens

    def open(self, capacity: int) -> int:
        """Start a request of at most `capacity` tokens and return its slot. Memory is reserved for the first of them.

        Raises OutOfMemory, naming the bytes asked for.
        """
        first = min(capacity, self.first_tokens)
        return self.take(lambda: Slot(*self._reserve(first), capacity), f"a KV cache of {first:,} tokens")

    def _step(self, slot: Slot, layer: int, k: Tensor, v: Tensor, n_past: int) -> tuple[Tensor, Tensor]:
        """Write one request's keys and values of one layer; return views of all that it has there."""
        stop = n_past + len(k)
        if stop > slot.reserved:
            self._grow(slot, n_past, stop)
        slot.keys[layer, :, n_past:stop] = k.transpose(0, 1)
        slot.values[layer, :, n_past:stop] = v.transpose(0, 1)
        return slot.keys[layer, :, :stop].transpose(0, 1), slot.values[layer, :, :stop].transpose(0, 1)

    def _grow(self, slot: Slot, used: int, needed: int) -> None:
        """Move a slot into room for `needed` tokens and as many again as it had, within its capacity.

        The first layer of a step does it for all of them: each then holds the same `used` tokens.
        """
        keys, values = self._reserve(min(slot.capacity, max(needed, 2 * slot.reserved)))
        keys[:, :, :used], values[:, :, :used] = slot.keys[:, :, :used], slot.values[:, :, :used]
        slot.keys, slot.values = keys, values

    def _reserve(self, n_tokens: int) -> tuple[Tensor, Tensor]:
        config = self.config
        shape = (config.n_layers, config.n_kv_heads, n_tokens, config.head_dim)
        try:
            keys, values = (torch.empty(shape, dtype=self.dtype, device=self.device) for _ in range(2))
        except (RuntimeError, MemoryError) as error:
            raise OutOfMemory(
                f"no memory for a KV cache of {n_tokens:,} tokens: {self.bytes_for(n_tokens):,} bytes on {self.device}. "
                "Ask for fewer tokens (max_tokens), a shorter prompt, or fewer requests at once."
            ) from error
        return keys, values

    def bytes_for(self, n_tokens: int) -> int:
        """Bytes of keys and values for n tokens of one request, over all layers."""
        config = self.config
        return 2 * config.n_layers * config.n_kv_heads * config.head_dim * n_tokens * self.dtype.itemsize


class NoCache:
    """Keeps nothing: every step must bring all tokens of its requests again. The slow path that a cache is tested against."""

    keeps_past, step_tokens = False, None

    def __init__(self, config=None, dtype=None, device=None):
        pass

    def open(self, capacity: int) -> int:
        """Slot 0: there is nothing to keep apart."""
        return 0

    def close(self, slot: int) -> None:
        """Nothing to give back."""

    def bytes_for(self, n_tokens: int) -> int:
        """0: no keys and values are kept."""
        return 0

    def update(
        self, layer: int, k: Float[Tensor, "n Hkv D"], v: Float[Tensor, "n Hkv D"], batch: Batch
    ) -> list[tuple[Tensor, Tensor]]:
        """Return each request's keys and values of this step, [T, Hkv, D] each.

        Raises ValueError when a request has a past, which nobody kept.
        """
        for r in range(batch.n_requests):
            n = batch.offsets[r + 1] - batch.offsets[r]
            if batch.lengths[r] != n:
                raise ValueError(f"without a cache all {batch.lengths[r]} tokens must be computed, got the last {n}")
        return [(k[batch.rows(r)], v[batch.rows(r)]) for r in range(batch.n_requests)]
