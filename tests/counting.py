"""Count what PyTorch is asked to do: the operations, and how many numbers each one gives."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode

HOST_READS = {"aten._local_scalar_dense.default", "aten.nonzero.default", "aten.is_nonzero.default", "aten.equal.default"}


class Counting(TorchDispatchMode):
    """While it is entered, `calls` collects (operation, numbers that it wrote) in order; a view writes none.

    `paused` leaves some out.
    """

    def __init__(self):
        super().__init__()
        self.calls: list[tuple[str, int]] = []
        self.paused = False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if not self.paused:
            written = result.numel() if isinstance(result, torch.Tensor) and not _is_view(function) else 0
            self.calls.append((str(function), written))
        return result

    def numbers(self, operation: str) -> int:
        """How many numbers all calls of one operation gave together."""
        return sum(n for name, n in self.calls if name == operation)


def _is_view(function) -> bool:
    """Whether the result shares its argument's memory, which is not written."""
    return any(one.alias_info is not None and not one.alias_info.is_write for one in function._schema.arguments)
