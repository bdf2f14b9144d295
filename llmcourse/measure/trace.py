"""An engine watched at work: what each step had to compute and how long it took, and how much of the time it was busy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING

from llmcourse.engine.sampling import SamplingParams
from llmcourse.measure.clock import synchronise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llmcourse.engine.engine import Engine
    from llmcourse.ops import Parts


@dataclass(frozen=True)
class TracedStep:
    """One pass through the model.

    Args:
        n_tokens, n_past: so many tokens were computed, after so many that were in the cache.
        seconds: that it took.
        busy_s: seconds of them in which a stage was computing; None unless the engine's table was watched.
    """

    n_tokens: int
    n_past: int
    seconds: float
    busy_s: float | None = None


@dataclass(frozen=True)
class Trace:
    """One request from its arrival to its last token; times are readings of one clock, in seconds.

    The seconds of the steps add up to the time from the arrival to the end of the last step.
    """

    arrival: float
    token_times: list[float]
    steps: list[TracedStep]

    @property
    def prefill(self) -> list[TracedStep]:
        """The steps up to the first token: one, or several where the prompt was computed in pieces."""
        return self.steps[: len(self.steps) - len(self.token_times) + 1]

    @property
    def decode(self) -> list[TracedStep]:
        """The steps after the first token, one for each."""
        return self.steps[len(self.prefill) :]


def record(engine: Engine, prompt, n_output: int, busy: Busy | None = None) -> Trace:
    """Run one prompt alone, greedily, to exactly n_output tokens, and write down every step.

    Args:
        engine: with no other request in it.
        prompt: text, a chat, or token ids.
        n_output: ≥ 1; fewer come where the model's context ends.
        busy: what `watched` gave with the engine's table, where that is wanted.

    Raises ValueError where other requests are in the engine, and what `Engine.add` and `Engine.step` raise.
    """
    if engine.scheduler.n_unfinished:
        raise ValueError(f"{engine.scheduler.n_unfinished} other requests are in the engine: their work would be counted")
    request = engine.add(prompt, SamplingParams(max_tokens=n_output, temperature=0, ignore_eos=True))
    steps, started = [], request.arrived
    try:
        while request.finish_reason is None:
            past, missing, before = request.n_computed, request.n_missing, busy.seconds if busy else 0.0
            engine.step()
            now = perf_counter()
            n = request.n_computed - past if engine.cache.keeps_past else missing
            steps.append(TracedStep(n, past, now - started, busy.seconds - before if busy else None))
            started = now
    finally:
        engine.cancel(request)
    return Trace(request.arrived, list(request.token_times), steps)


class Busy:
    """How long something was being computed: `seconds`, counted while a stage of the table runs."""

    def __init__(self) -> None:
        self.seconds, self._depth = 0.0, 0

    @contextmanager
    def _computing(self, wait: Callable[[], None]) -> Iterator[None]:
        """Count the outermost of nested stages (swiglu calls linear)."""
        outermost, self._depth = self._depth == 0, self._depth + 1
        if outermost:
            wait()
        start = perf_counter()
        try:
            yield
        finally:
            self._depth -= 1
            if outermost:
                wait()
                self.seconds += perf_counter() - start


def watched(parts: Parts, device="cpu") -> tuple[Parts, Busy]:
    """The same table, and a `Busy` that grows while one of its stages is at work.

    Over the time that passed this is what monitoring tools call utilization: the share of the time in which anything at
    all was being computed, however slowly. An accelerator is waited for around every stage, which slows it down.
    """
    busy, wait = Busy(), synchronise(device)

    def watch(stage: str, function: Callable) -> Callable:
        @wraps(function)
        def call(*args, **kwargs):
            with busy._computing(wait):
                return function(*args, **kwargs)

        return call

    return parts.wrapped(watch), busy
