"""Notice in a worker that a submission has changed the code that runs and encodes its results: `Seal().broken()`."""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType

_OURS = ("llmcourse.checks", "llmcourse.given", "llmcourse.grade", "llmcourse.workbook.answers", "llmcourse_probes_")
_OTHERS = ("builtins", "json", "json.encoder", "base64", "contextlib", "torch", "numpy")
_A_KERNELS_OWN = {"print", "input", "open", "help", "exit", "quit", "copyright", "credits", "license", "breakpoint",
                  "display", "get_ipython", "_"}  # fmt: skip


class Seal:
    """Functions, classes and modules as they are now, by where they are found.

    It sees an honest accident and a lazy trick. Who knows of it and runs in the same process can undo a change before
    it looks: that is what the isolation and the trusted comparison are for.
    """

    def __init__(self):
        self._places = [place for name, module in list(sys.modules.items()) for place in _places(name, module)]
        self._functions = [(f"{f.__module__}.{f.__qualname__}", f, f.__code__, f.__defaults__, f.__kwdefaults__)
                           for where, _, kept in self._places if where.startswith(_OURS)
                           for f in kept.values() if isinstance(f, FunctionType)]

    def broken(self) -> str:
        """The name of something that is no longer what it was, "" if all is."""
        for where, space, kept in self._places:
            for name, value in kept.items():
                if space.get(name) is not value:
                    return f"{where}.{name}"
        for name, function, code, defaults, named in self._functions:
            if (function.__code__, function.__defaults__, function.__kwdefaults__) != (code, defaults, named):
                return name
        return ""


def _places(name: str, module: ModuleType) -> list[tuple[str, object, dict[str, object]]]:
    """(where, namespace, what is kept of it) of a module, and of the classes in it that judge."""
    if not (name in _OTHERS or name.startswith(_OURS)) or not isinstance(module, ModuleType):
        return []
    space = object.__getattribute__(module, "__dict__")
    kept = {key: value for key, value in space.items()
            if callable(value) and not key.startswith("__") and not (name == "builtins" and key in _A_KERNELS_OWN)}
    if name in ("torch", "numpy"):  # what classes a name stands for may depend on settings; their functions do not
        kept = {key: value for key, value in kept.items() if not isinstance(value, type)}
    places = [(name, space, kept)]
    if name == "torch":
        tensor = vars(module.Tensor)  # None for what it inherits: a method of its own in that place is a change, too
        methods = [one for one in dir(module.Tensor) if callable(getattr(module.Tensor, one))]
        places.append(("torch.Tensor", tensor, {one: tensor.get(one) for one in methods}))
    for key, value in kept.items():
        if isinstance(value, type) and value.__module__.startswith(_OURS):
            inner = vars(value)
            places.append((f"{name}.{key}", inner, {one: inner[one] for one in inner if callable(inner[one])}))
    return places
