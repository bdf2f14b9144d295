"""What a request may ask of the sampler, and the noise that it draws with."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from llmcourse.errors import BadSamplingParams


@dataclass(frozen=True)
class SamplingParams:
    """How to choose tokens, and when to stop. The order of the filters is fixed:
    repetition penalty → temperature → top-k → top-p → min-p → draw.

    Args:
        max_tokens: the most tokens to generate, ≥ 1.
        temperature: 0 is greedy (always the likeliest token); 1 draws from the model's own distribution.
        top_k: keep the k likeliest tokens; 0 keeps all.
        top_p: keep the likeliest tokens until their probabilities reach p, in [0, 1]; 1 keeps all.
        min_p: keep tokens at least min_p times as likely as the likeliest, in [0, 1]; 0 keeps all.
        repetition_penalty: > 1 makes tokens of the prompt and output less likely; 1 does nothing; > 0.
        seed: the same seed gives the same draws, alone or in a batch; None draws a fresh one.
        stop: strings that end the output; they do not appear in the text.
        ignore_eos: go on after an end-of-text token, up to max_tokens (for benchmarks).
        logprobs: None, or how many of the likeliest tokens to report per position, with their log-probabilities under
            the model's own distribution (before penalty and filters); 0 reports the chosen token only.

    Raises BadSamplingParams naming the parameter, its value and the range.
    """

    max_tokens: int = 256
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    logprobs: int | None = None

    def __post_init__(self) -> None:
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)
        object.__setattr__(self, "stop", stop)
        check_whole("max_tokens", self.max_tokens, 1)
        check_whole("top_k", self.top_k, 0)
        check_number("temperature", self.temperature, 0, math.inf)
        check_number("top_p", self.top_p, 0, 1)
        check_number("min_p", self.min_p, 0, 1)
        check_number("repetition_penalty", self.repetition_penalty, 0, math.inf, above=True)
        if self.seed is not None:
            check_whole("seed", self.seed, None)
        if self.logprobs is not None:
            check_whole("logprobs", self.logprobs, 0)
        if any(not isinstance(text, str) or not text for text in stop):
            raise BadSamplingParams(f"stop must hold non-empty strings, got {self.stop!r}")


def check_whole(name: str, value, least: int | None) -> None:
    """Raise BadSamplingParams unless value is a whole number ≥ least (any whole number when least is None)."""
    if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
        wanted = "a whole number" if least is None else f"a whole number, at least {least}"
        raise BadSamplingParams(f"{name} must be {wanted}, got {value!r}")


def check_number(name: str, value, low: float, high: float, above: bool = False) -> None:
    """Raise BadSamplingParams unless value is a finite number in [low, high] (above `low` itself when `above`)."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not low <= value <= high or (above and value == low):
        least = f"above {low:g}" if above else f"at least {low:g}"
        most = "" if high == math.inf else f" and at most {high:g}"
        raise BadSamplingParams(f"{name} must be a number {least}{most}, got {value!r}")


def uniform(seed: int, stream: int, position: int) -> float:
    """A number in [0, 1) that depends on these three numbers only.

    Noise belongs to a request's seed and to the position of the token, not to the order of work: the same request draws
    the same tokens alone, in a batch, or after it was preempted. A hash is slower than a generator's next number, and it
    needs no state that could get out of step.
    """
    digest = hashlib.blake2b(f"{seed}/{stream}/{position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)
