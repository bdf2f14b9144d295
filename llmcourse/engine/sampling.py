"""What a request may ask of the sampler, and the noise that it draws with."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import index

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
        repetition_penalty: > 1 makes tokens of the prompt and output less likely; 1 does nothing; 1e-6 to 1e6.
        seed: the same seed gives the same draws, alone or in a batch; None draws a fresh one.
        stop: strings that end the output, a single one, or None; they do not appear in the text.
        ignore_eos: go on after an end-of-text token, up to max_tokens (for benchmarks).
        logprobs: None, or how many of the likeliest tokens to report per position, with their log-probabilities under
            the model's own distribution (before penalty and filters); 0 reports the chosen token only.

    Numbers may be NumPy's or PyTorch's. Raises BadSamplingParams naming the parameter, its value and the range.
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
        def whole(name: str, least: int | None) -> None:
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least))

        def number(name: str, low: float, high: float) -> None:
            object.__setattr__(self, name, real_number(name, getattr(self, name), low, high))

        whole("max_tokens", 1)
        whole("top_k", 0)
        number("temperature", 0, math.inf)
        number("top_p", 0, 1)
        number("min_p", 0, 1)
        number("repetition_penalty", 1e-6, 1e6)
        if self.seed is not None:
            whole("seed", None)
        if self.logprobs is not None:
            whole("logprobs", 0)
        object.__setattr__(self, "stop", stop_strings(self.stop))


def stop_strings(stop) -> tuple[str, ...]:
    """One stop string, several, or None for none, as a tuple. Raises BadSamplingParams."""
    if stop is None:
        return ()
    stops = (stop,) if isinstance(stop, str) or not isinstance(stop, Iterable) else tuple(stop)
    if any(not isinstance(text, str) or not text for text in stops):
        raise BadSamplingParams(f"stop must hold non-empty strings, got {stop!r}")
    return tuple(map(str, stops))


def whole_number(name: str, value, least: int | None) -> int:
    """The value as an int, NumPy's and PyTorch's whole numbers included. Raises BadSamplingParams for anything else, or
    one below `least` (None: any will do)."""
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        wanted = "a whole number" if least is None else f"a whole number, at least {least}"
        raise BadSamplingParams(f"{name} must be {wanted}, got {value!r}")
    return number


def real_number(name: str, value, low: float, high: float) -> float:
    """The value as a Python number, NumPy's and PyTorch's single numbers included. Raises BadSamplingParams for anything
    else, or one that is not finite or not in [low, high]."""
    try:
        number = math.nan if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # no number, or an array of several
        number = math.nan
    if not math.isfinite(number) or not low <= number <= high:
        most = "" if high == math.inf else f" and at most {high:g}"
        raise BadSamplingParams(f"{name} must be a number at least {low:g}{most}, got {value!r}")
    return value if isinstance(value, (int, float)) and type(value) in (int, float) else number


def one_of(params: SamplingParams | None, settings: dict) -> SamplingParams:
    """The params given, or made of settings by name. Raises TypeError for both at once."""
    if params is not None and not isinstance(params, SamplingParams):
        raise TypeError(f"params is a SamplingParams, got {params!r}; settings are given by their names")
    if params is not None and settings:
        raise TypeError(f"give params or settings, not both; got params and {', '.join(settings)}")
    return params or SamplingParams(**settings)


def params_of(params, settings: dict, n: int) -> tuple[list[SamplingParams], bool]:
    """One SamplingParams for each of n prompts, and whether they share a single one.

    Raises TypeError for params and settings at once, or for anything that is no SamplingParams, ValueError for another
    number of them than prompts.
    """
    if params is None or isinstance(params, SamplingParams):
        return [one_of(params, settings)] * n, True
    if isinstance(params, Mapping) or not isinstance(params, Iterable):
        raise TypeError(f"params is a SamplingParams or a list of them, got {params!r}; settings are given by their names")
    each = [one_of(own, settings) for own in params]
    if len(each) != n:
        raise ValueError(f"{len(each)} SamplingParams for {n} prompts: give one for all, or one for each")
    return each, False


def uniform(seed: int, stream: int, position: int) -> float:
    """A number in [0, 1) that depends on these three numbers only.

    Noise belongs to a request's seed and to the position of the token, not to the order of work: the same request draws
    the same tokens alone, in a batch, or after it was preempted. A hash is slower than a generator's next number, and it
    needs no state that could get out of step.
    """
    digest = hashlib.blake2b(f"{seed}/{stream}/{position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)
