"""What caches with memory of their own share: numbered slots, one per request, and counting the bytes in them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.batch import Batch
from llmcourse.errors import OutOfMemory


class Slots:
    """Slots 0, 1, 2, … of a cache; the smallest free number is given out first.

    A slot holds an object with `tensors()`, all the tensors that keep the request's keys and values, and `capacity`, the
    most tokens that it may be given. A cache says in `_step` what it does with one request's part of a step.
    """

    keeps_past, step_tokens = True, None

    def __init__(self, config, dtype: torch.dtype, device: torch.device | str):
        self.config, self.dtype, self.device = config, dtype, device
        self.slots: dict[int, object] = {}

    def take(self, make: Callable[[], object], what: str) -> int:
        """Put `make()` into a new slot and return its number. Raises OutOfMemory naming `what` did not fit."""
        try:
            contents = make()
        except (RuntimeError, MemoryError) as error:
            raise OutOfMemory(f"no memory for {what} on {self.device}. Ask for fewer requests at once.") from error
        slot = next(number for number in range(len(self.slots) + 1) if number not in self.slots)
        self.slots[slot] = contents
        return slot

    def update(
        self, layer: int, k: Float[Tensor, "n Hkv D"], v: Float[Tensor, "n Hkv D"], batch: Batch
    ) -> list[tuple[Tensor, ...]]:
        """Store the step's keys and values of one layer; return for each request what its rows see.

        Returns:
            (K, V), each [T, Hkv, D], T counting the new tokens; or (K, V, visible) where some row may not see all of the
            keys up to its own (docs/parts.md).

        Raises, before anything of that request is written, ValueError when the tokens do not fit, and OutOfMemory when
        there is no memory to grow into.
        """
        entries = []
        for r, number in enumerate(batch.slots):
            kept, rows, stop = self.slots[number], batch.rows(r), batch.lengths[r]
            if stop > kept.capacity:
                raise ValueError(f"{stop} tokens do not fit into slot {number}, opened for {kept.capacity}")
            entries.append(self._step(kept, layer, k[rows], v[rows], stop - (rows.stop - rows.start)))
        return entries

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
