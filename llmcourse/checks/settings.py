"""The settings under which a probe runs, whatever a notebook has set for itself: the reference's are the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def usual_settings() -> Iterator[None]:
    """PyTorch makes float32 tensors on the CPU while the body runs; what was set before, and by the body, is undone."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    torch.set_default_dtype(torch.float32)
    if device.type != "cpu":
        torch.set_default_device("cpu")
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(device)
