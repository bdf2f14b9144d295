"""llmcourse: build an LLM inference engine piece by piece, and run every piece inside a real model."""

from __future__ import annotations

import importlib
import os

# PyTorch's threads meet some hundred times per token, and those that wait spin. By GNU OpenMP's default they spin so long
# that beside any other busy program (a browser, a second notebook) they take each other's processor, and decode can become
# many times slower. Without spinning at all, waking up costs half again as much as the work. A short spin costs a fifth on
# an idle machine. The setting counts when it stands before torch is loaded; who sets a policy of their own keeps it.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

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
