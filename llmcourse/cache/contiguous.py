"""Contiguous KV cache: one stretch of memory per request, reserved when the request starts."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.batch import Batch
from llmcourse.errors import OutOfMemory


class ContiguousCache:
    """Keys and values of every layer for several requests at once.

    Each request has a slot: two tensors of shape [L, Hkv, capacity, D]. Heads come before tokens, so that the keys of
    one head lie together: decode reads them once, in order. Within its capacity a slot never moves.

    Args:
        config: n_layers, n_kv_heads and head_dim are read.
    """

    keeps_past = True

    def __init__(self, config, dtype: torch.dtype, device: torch.device | str):
        self.config, self.dtype, self.device = config, dtype, device
        self.slots: dict[int, tuple[Tensor, Tensor]] = {}

    def open(self, capacity: int) -> int:
        """Reserve room for `capacity` tokens of a new request and return its slot.

        Raises OutOfMemory, naming the bytes asked for.
        """
        config = self.config
        shape = (config.n_layers, config.n_kv_heads, capacity, config.head_dim)
        try:
            keys, values = (torch.empty(shape, dtype=self.dtype, device=self.device) for _ in range(2))
        except (RuntimeError, MemoryError) as error:
            raise OutOfMemory(
                f"no memory for a KV cache of {capacity:,} tokens: {self.bytes_for(capacity):,} bytes on {self.device}. "
                "Ask for fewer tokens (max_tokens), a shorter prompt, or fewer requests at once."
            ) from error
        slot = next(number for number in range(len(self.slots) + 1) if number not in self.slots)
        self.slots[slot] = (keys, values)
        return slot

    def close(self, slot: int) -> None:
        """Give a request's memory back. Raises KeyError for a slot that is not open."""
        del self.slots[slot]

    def update(
        self, layer: int, k: Float[Tensor, "n Hkv D"], v: Float[Tensor, "n Hkv D"], batch: Batch
    ) -> list[tuple[Tensor, Tensor]]:
        """Write the step's keys and values of one layer; return what each request now has there.

        Returns:
            for each request a pair (K, V) of views, [T, Hkv, D], T counting the new tokens.

        Raises ValueError when the tokens do not fit, before anything of that request is written.
        """
        pairs = []
        for r, slot in enumerate(batch.slots):
            keys, values = self.slots[slot]
            rows, stop = batch.rows(r), batch.lengths[r]
            start = stop - (rows.stop - rows.start)
            if stop > keys.shape[2]:
                raise ValueError(f"{stop} tokens do not fit into slot {slot}, opened for {keys.shape[2]}")
            keys[layer, :, start:stop] = k[rows].transpose(0, 1)
            values[layer, :, start:stop] = v[rows].transpose(0, 1)
            pairs.append((keys[layer, :, :stop].transpose(0, 1), values[layer, :, :stop].transpose(0, 1)))
        return pairs

    def bytes_for(self, n_tokens: int) -> int:
        """Bytes of keys and values for n tokens of one request, over all layers."""
        config = self.config
        return 2 * config.n_layers * config.n_kv_heads * config.head_dim * n_tokens * self.dtype.itemsize


class NoCache:
    """Keeps nothing: every step must bring all tokens of its requests again. The slow path that a cache is tested against."""

    keeps_past = False

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
