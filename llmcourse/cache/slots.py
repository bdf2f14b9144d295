"""What caches with memory of their own share: numbered slots, one per request, and counting the bytes in them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from llmcourse.errors import OutOfMemory


class Slots:
    """Slots 0, 1, 2, … of a cache; the smallest free number is given out first.

    A slot holds an object with `tensors()`, all the tensors that keep the request's keys and values.
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
