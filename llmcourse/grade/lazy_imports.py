"""What a lab imports for its demonstrations, in a worker, which does not run them: imported when it is first used.

Behind these names are torch and matplotlib, and a process without them is forked several times faster.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

_MODULES = ("llmcourse.workbook.plots",)
_FUNCTIONS = {"llmcourse": ("Engine", "load_model", "load_tokenizer"), "llmcourse.workbook": ()}


def import_late() -> None:
    """Let the public functions of `llmcourse` and `llmcourse.workbook` import what is behind them at the first call."""
    for package, names in _FUNCTIONS.items():
        owner = importlib.import_module(package)
        for name in names or owner.__all__:
            setattr(owner, name, _late(owner, name))
    for name in _MODULES:
        _import_module_late(name)


def warm_up() -> None:
    """Fill the caches that every submission would fill anew: compiled patterns."""
    pattern = sys.modules.get("llmcourse.text.pattern")
    if pattern:
        pattern.split("It's 12 cats")


def _late(owner: ModuleType, name: str):
    def real():
        return getattr(importlib.import_module(_module_of(owner, name)), name)

    def late(*arguments, **named):
        return real()(*arguments, **named)

    late.__name__ = late.__qualname__ = name
    late.__mro_entries__ = lambda bases: (real(),)  # where it is a class, others may be derived from it
    return late


def _module_of(owner: ModuleType, name: str) -> str:
    """Full name of the module that a lazy package takes a name from."""
    module = owner._EXPORTS[name]
    return module if "." in module else f"{owner.__name__}.{module}"


def _import_module_late(name: str) -> None:
    spec = importlib.util.find_spec(name)
    if spec is None:
        return
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    owner, _, last = name.rpartition(".")
    setattr(sys.modules[owner], last, module)
