"""llmcourse: build an LLM inference engine piece by piece, and run every piece inside a real model."""

from __future__ import annotations

import importlib
import os

# PyTorch's threads meet some hundred times per token, and by default those that wait spin. Beside any other busy program
# (a browser, a second notebook) they then take each other's processor: decode was seen up to a hundred times slower.
# Waiting threads that sleep cost little. The setting counts when it stands before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"

_EXPORTS = {
    "Engine": "llmcourse.engine.engine",
    "SamplingParams": "llmcourse.engine.sampling",
    "load_model": "llmcourse.model.load",
    "load_tokenizer": "llmcourse.model.load",
}
__all__ = [*_EXPORTS, "__version__"]


def __getattr__(name: str):
    """Import public names on first use, so that `import llmcourse` does not import torch."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'llmcourse' has no attribute {name!r}; public names: {', '.join(__all__)}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
