"""The table of parts: every numerical stage of the engine is a plain function, passed in explicitly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps


def as_it_is(value):
    """The weight, the tokenizer or the cache, unchanged."""
    return value


@dataclass(frozen=True)
class Parts:
    """The functions that one forward pass and one draw are made of. docs/parts.md gives every signature with shapes.

    A backend is one such table (`reference`, `cpu`), and so is a learner's notebook. Replace single entries with
    `dataclasses.replace(parts, attend=my_attend)`.

    `pack` is not a stage: an engine calls it once for every linear weight, before its first step, and `linear` gets what
    it returned. A table with a `linear` of its own that wants plain tensors leaves it at `as_it_is`.
    """

    embed: Callable
    rms_norm: Callable
    rope_angles: Callable
    rope: Callable
    linear: Callable
    attend: Callable
    swiglu: Callable
    sample: Callable
    pack: Callable = as_it_is
    tokenizer: Callable = as_it_is
    cache: Callable = as_it_is
    name: str = "unnamed"

    def wrapped(self, wrapper: Callable[[str, Callable], Callable]) -> Parts:
        """The same table with every stage replaced by `wrapper(stage name, function)`: for counting, timing, looking in."""
        return replace(self, **{stage: wrapper(stage, getattr(self, stage)) for stage in STAGES})

    def counted(self) -> tuple[Parts, Counter]:
        """This table with a counter of calls per stage, which grows while the table is in use."""
        calls: Counter = Counter()

        def counting(stage: str, function: Callable) -> Callable:
            @wraps(function)
            def call(*args, **kwargs):
                calls[stage] += 1
                return function(*args, **kwargs)

            return call

        return self.wrapped(counting), calls


STAGES = tuple(field.name for field in fields(Parts) if field.name not in ("pack", "tokenizer", "cache", "name"))
