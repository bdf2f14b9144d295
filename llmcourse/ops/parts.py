"""The table of parts: every numerical stage of the engine is a plain function, passed in explicitly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from functools import wraps

from llmcourse.ops.layer import layer


def as_it_is(value):
    """The weight, the tokenizer or the cache, unchanged."""
    return value


@dataclass(frozen=True)
class Limits:
    """What a prepared step must be able to take.

    Args:
        max_requests: the most requests in one step.
        max_step_tokens: the most tokens in one step.
        max_context: the most tokens of one request.
    """

    max_requests: int
    max_step_tokens: int
    max_context: int


@dataclass(frozen=True)
class Parts:
    """The functions that one forward pass and one draw are made of. docs/parts.md gives every signature with shapes.

    A backend is one such table (`reference`, `cpu`), and so is a learner's notebook. Replace single entries with
    `dataclasses.replace(parts, attend=my_attend)`.

    The entries without a default are the stages. The others are none, and nobody counts their calls:

    layer: one whole layer; the default composes it of the stages.
    prepare: (model, cache, limits) → a step, which computes a whole batch, or None where it cannot: then, and in a table
        without it, the model goes layer by layer.
    takes: the kinds of cache that `prepare` takes; it is not asked for others.
    make_cache: (spec, config, dtype, device) → this table's own cache, or None for the package's.
    sample_rows: many rows at once; without it, a loop over `sample`.
    reorder: called once for every linear weight, before the first step; `linear` gets what it returned. A table with a
        `linear` of its own that wants plain tensors leaves it at `as_it_is`.
    tokenizer, cache: called once, with the model's tokenizer and the cache that was asked for.
    """

    embed: Callable
    rms_norm: Callable
    rope_angles: Callable
    rope: Callable
    linear: Callable
    attend: Callable
    swiglu: Callable
    sample: Callable
    layer: Callable = layer
    prepare: Callable | None = None
    takes: frozenset[str] = frozenset()
    make_cache: Callable | None = None
    sample_rows: Callable | None = None
    reorder: Callable = as_it_is
    tokenizer: Callable = as_it_is
    cache: Callable = as_it_is
    name: str = "unnamed"

    def by_stages(self) -> Parts:
        """The same table without a step or a sampler that would pass its stages by: what a replaced stage is put into."""
        return replace(self, prepare=None, sample_rows=None)

    def wrapped(self, wrapper: Callable[[str, Callable], Callable]) -> Parts:
        """The table by its stages, every one replaced by `wrapper(stage name, function)`: to count, time, look in."""
        return replace(self.by_stages(), **{stage: wrapper(stage, getattr(self, stage)) for stage in STAGES})

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


STAGES = tuple(field.name for field in fields(Parts) if field.default is MISSING)
