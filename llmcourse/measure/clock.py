"""One way to time, and what to say about the times: TTFT, ITL, their percentiles, tokens per second. Seconds everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import floor
from statistics import fmean, median
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

    from llmcourse.engine.request import Result


class Percentiles(NamedTuple):
    """The middle of some values and their upper end: half of them, 95 % and 99 % lie at or below."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Percentiles:
        """Of any values, in any order. Raises ValueError where there are none."""
        return cls(*(percentile(values, p) for p in (50, 95, 99)))


@dataclass(frozen=True)
class Latency:
    """When the tokens of one request came.

    Args:
        ttft_s: time to first token: from the request's arrival to its first token.
        itl_s: inter-token latencies: from one token to the next, one fewer than tokens. The wait for the first token is
            not among them.
    """

    ttft_s: float
    itl_s: tuple[float, ...]

    @classmethod
    def from_times(cls, arrival: float, token_times: Sequence[float]) -> Latency:
        """From readings of one clock: when the request arrived, and when each token came.

        Raises ValueError for no token, or for times that run backwards.
        """
        if not token_times:
            raise ValueError("no token came: there is no latency to speak of")
        gaps = [after - before for before, after in zip([arrival, *token_times], token_times)]
        if min(gaps) < 0:
            raise ValueError(f"times run backwards: arrival {arrival}, tokens {list(token_times)}"[:300])
        return cls(gaps[0], tuple(gaps[1:]))

    @classmethod
    def of(cls, result: Result) -> Latency:
        """Of what an engine returned. Raises ValueError for a result without a token."""
        if result.ttft_s is None:
            raise ValueError(f"no token came (finish_reason {result.finish_reason!r}): there is no latency to speak of")
        return cls(result.ttft_s, tuple(result.itl_s))

    @property
    def token_times(self) -> list[float]:
        """When each token came, counted from the arrival."""
        return list(accumulate((self.ttft_s, *self.itl_s)))

    @property
    def itl_mean_s(self) -> float | None:
        """The mean gap; None for a single token."""
        return fmean(self.itl_s) if self.itl_s else None

    @property
    def itl(self) -> Percentiles | None:
        """Percentiles of the gaps; None for a single token."""
        return Percentiles.of(self.itl_s) if self.itl_s else None

    @property
    def tokens_per_s(self) -> float:
        """All tokens over the time from the arrival to the last: what the user of one request sees."""
        return (1 + len(self.itl_s)) / self.token_times[-1]

    @property
    def decode_tokens_per_s(self) -> float | None:
        """Tokens after the first over the time since the first, so that the prefill is not in it; None for one token."""
        return len(self.itl_s) / sum(self.itl_s) if self.itl_s else None


def percentile(values: Sequence[float], p: float) -> float:
    """The value below which p percent of the values lie, p from 0 to 100.

    With n sorted values, p % stands at place (n − 1) · p / 100, counted from 0; between two places it is interpolated
    linearly. Source: Hyndman and Fan 1996, "Sample Quantiles in Statistical Packages", definition 7 (numpy's default).
    Raises ValueError for no values, or a p outside 0 to 100.
    """
    if not values or not 0 <= p <= 100:
        raise ValueError(f"percentile {p} of {len(values)} values: needs at least one value and 0 ≤ p ≤ 100")
    ordered = sorted(values)
    place = (len(ordered) - 1) * p / 100
    below = floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def pooled(results: Sequence[Result], warm_up: int = 1) -> tuple[Percentiles, Percentiles | None]:
    """Percentiles of TTFT over the requests, and of ITL over all their gaps, without the first `warm_up` results.

    The ITL's are None where no request has a second token. Raises ValueError where no result is left.
    """
    each = [Latency.of(result) for result in results[warm_up:]]
    gaps = [gap for one in each for gap in one.itl_s]
    return Percentiles.of([one.ttft_s for one in each]), Percentiles.of(gaps) if gaps else None


def times(
    work: Callable[[], object], device: str | torch.device = "cpu", runs: int = 5, warm_up: int = 1
) -> list[float]:
    """Seconds of each of `runs` runs of `work`, after `warm_up` runs that do not count.

    The device is waited for before and after each: an accelerator is handed its work and goes on computing.
    """
    wait = synchronise(device)
    seconds = []
    for _ in range(warm_up + runs):
        wait()
        start = perf_counter()
        work()
        wait()
        seconds.append(perf_counter() - start)
    return seconds[warm_up:]


def median_time(
    work: Callable[[], object], device: str | torch.device = "cpu", runs: int = 5, warm_up: int = 1
) -> float:
    """The course's one way to say how long something takes: the median of `times`."""
    return median(times(work, device, runs, warm_up))


def synchronise(device: str | torch.device) -> Callable[[], None]:
    """What waits until the device has done all that it was given; nothing to do on a CPU."""
    import torch

    kind = torch.device(device).type
    return {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}.get(kind, lambda: None)
