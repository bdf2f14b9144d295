"""The learner's side of the course: check, hint, explore, predict, measured; and the builder of the notebooks."""

from __future__ import annotations

import importlib

_EXPORTS = {
    "check": "checking",
    "compare_layers": "layers",
    "hint": "checking",
    "explore": "exploring",
    "from_earlier_labs": "earlier",
    "predict": "predicting",
    "your_code": "unfinished",
    "your_copy": "signposts",
    "measured": "predicting",
    "load_mine": "mine",
    "parts": "mine",
    "run_mine": "mine",
}
__all__ = list(_EXPORTS)


def __getattr__(name: str):
    """Import public names on first use: importing this package loads neither IPython nor any widget."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; public names: {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value
