"""What caches with memory of their own share: numbered slots, one per request, and counting the bytes in them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.batch import Batch
from llmcourse.cache.base import KVCache, window_of
from llmcourse.errors import OutOfMemory, naming_memory


class Slots(KVCache):
    """Slots 0, 1, 2, … of a cache; the smallest free number is given out first.

    A slot holds an object with `tensors()`, all the tensors that keep the request's keys and values, `capacity`, the most
    tokens that it may be given, and `reserved`, how many of them fit without another allocation. A cache says in `_slot` what a new one holds, in `_grow` how one gets room for more
    tokens, and in `_step` what it does with one request's part of a step.
    """

    def __init__(self, config, dtype: torch.dtype, device: torch.device | str):
        self.config, self.dtype, self.device = config, dtype, device
        self.slots: dict[int, object] = {}

    def open(self, ids: Sequence[int], capacity: int) -> tuple[int, int]:
        """Start a request of at most `capacity` tokens, with room for those that are known.

        ids: the tokens known so far, at most `capacity`.
        Returns its slot, and how many of ids are there already: 0.
        Raises OutOfMemory, naming the bytes asked for.
        """
        room = self._first_room(len(ids), capacity)
        with naming_memory(self._what(room)):
            contents = self._slot(capacity)
            self._grow(contents, room)
        slot = next(number for number in range(len(self.slots) + 1) if number not in self.slots)
        self.slots[slot] = contents
        return slot, 0

    def reserve(self, slot: int, length: int) -> bool:
        """Make room for a request's first `length` tokens; False where there is no memory for them.

        Raises ValueError for more tokens than the slot was opened for.
        """
        kept = self.slots[slot]
        if length > kept.capacity:
            raise ValueError(f"{length} tokens do not fit into slot {slot}, opened for {kept.capacity}")
        try:
            with naming_memory(self._what(length)):
                self._grow(kept, length)
        except OutOfMemory:
            return False
        return True

    def update(
        self, layer: int, k: Float[Tensor, "n Hkv D"], v: Float[Tensor, "n Hkv D"], batch: Batch
    ) -> list[tuple[Tensor, ...]]:
        """Store the step's keys and values of one layer; return for each request what its rows see.

        Returns:
            (K, V), each [T, Hkv, D], T counting the new tokens; or (K, V, visible) where some row may not see all of the
            keys up to its own (docs/parts.md).

        Raises ValueError, before anything of that request is written, when there is no room for the tokens.
        """
        entries, window = [], window_of(self.config, layer)
        for r, chunk in enumerate(batch.chunks):
            kept, rows = self.slots[chunk.slot], batch.rows(r)
            if chunk.length > kept.capacity or chunk.length > kept.reserved:
                room = f"opened for {kept.capacity}" if chunk.length > kept.capacity else f"which has room for {kept.reserved}"
                raise ValueError(f"{chunk.length} tokens do not fit into slot {chunk.slot}, {room}; `reserve` makes room")
            entries.append(self._step(kept, layer, k[rows], v[rows], chunk.n_past, window))
        return entries

    def _first_room(self, n_known: int, capacity: int) -> int:
        """For how many tokens a new request gets room at once."""
        return n_known

    def _grow(self, kept, needed: int) -> None:
        """Make room in a slot for `needed` tokens in all."""

    def _what(self, n_tokens: int) -> str:
        return (
            f"a KV cache of {n_tokens:,} tokens: {self.bytes_for(n_tokens):,} bytes on {self.device}. "
            "Ask for fewer tokens (max_tokens), a shorter prompt, or fewer requests at once."
        )

    def close(self, slot: int) -> None:
        """Give a request's memory back. Raises KeyError for a slot that is not open."""
        del self.slots[slot]

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors that open slots hold now, measured."""
        return sum(tensor.numel() * tensor.element_size() for kept in self.slots.values() for tensor in kept.tensors())


def grown(tensor: Tensor, dim: int, needed: int, most: int) -> Tensor:
    """The tensor, or a copy with room for `needed` along `dim`: twice as much as before, `most` at the most."""
    have = tensor.shape[dim]
    if needed <= have:
        return tensor
    shape = list(tensor.shape)
    shape[dim] = min(most, max(needed, 2 * have))
    larger = torch.empty(shape, dtype=tensor.dtype, device=tensor.device)
    larger.narrow(dim, 0, have).copy_(tensor)
    return larger
