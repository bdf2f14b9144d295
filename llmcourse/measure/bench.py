"""Benchmarks of one engine on one machine: what is counted, and how it is timed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import fmean, median

from llmcourse.engine.engine import Engine
from llmcourse.engine.prompts import IdsOnly
from llmcourse.engine.sampling import SamplingParams
from llmcourse.errors import PromptTooLong
from llmcourse.measure.clock import Latency, Percentiles
from llmcourse.measure.roofline import BITS_PER_BYTE, forward_flops, weight_bytes_read

PROMPTS = {"decode": 16, "prefill": 512}  # prompt tokens unless asked otherwise
_SEED = 0


@dataclass(frozen=True)
class Bench:
    """One benchmark's numbers.

    Args:
        kind: "decode" or "prefill".
        n_prompt, n_output: tokens of the prompt, and tokens generated after it.
        runs: tokens per second of each run, in the order of running; the warm-up is not among them.
        bytes_per_token: bytes that a decode step must move at least, the mean over the steps of a run; None for prefill.
        flops_per_token: floating point operations per prompt token; None for decode.
        itl: percentiles of the gaps between tokens, over all runs; None for prefill.
    """

    kind: str
    n_prompt: int
    n_output: int
    runs: list[float]
    bytes_per_token: float | None = None
    flops_per_token: float | None = None
    itl: Percentiles | None = None

    @property
    def tokens_per_s(self) -> float:
        """The median of the runs."""
        return median(self.runs)

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes moved per second at the least; over the machine's bandwidth this is the MBU."""
        return None if self.bytes_per_token is None else self.bytes_per_token * self.tokens_per_s

    @property
    def flops_per_s(self) -> float | None:
        """Useful operations per second; over the machine's peak this is the MFU."""
        return None if self.flops_per_token is None else self.flops_per_token * self.tokens_per_s


def bench_decode(
    model, parts=None, *, cache: str = "contiguous", n_prompt: int = PROMPTS["decode"], n_output: int = 64,
    runs: int = 5,
) -> Bench:  # fmt: skip
    """Decode one request, token by token, through the whole engine: model, sampler (greedy), scheduler.

    A run generates n_output tokens after n_prompt random ones. Its figure is n_output − 1 divided by the seconds from
    the first output token to the last: the prefill is not in it. One run before is a warm-up.

    Raises ValueError for fewer than 2 output tokens or no run, PromptTooLong beyond the context.
    """
    if n_output < 2:
        raise ValueError(f"decode needs at least 2 output tokens, to have a gap between them; got {n_output}")
    results, engine = _run(model, parts, cache, n_prompt, n_output, runs)
    each = [Latency.of(result) for result in results]
    return Bench(
        "decode", n_prompt, n_output, [one.decode_tokens_per_s for one in each],
        bytes_per_token=fmean(_step_bytes(model, engine.cache, n_prompt + i) for i in range(1, n_output)),
        itl=Percentiles.of([gap for one in each for gap in one.itl_s]),
    )  # fmt: skip


def bench_prefill(
    model, parts=None, *, cache: str = "contiguous", n_prompt: int = PROMPTS["prefill"], runs: int = 5
) -> Bench:
    """Prefill one request of n_prompt random tokens, and choose the first output token.

    A run's figure is n_prompt divided by its TTFT. The logits of the last prompt token only are computed, and keys and
    values of all are kept, as in any generation. One run before is a warm-up.

    Raises ValueError for no run, PromptTooLong beyond the context.
    """
    results, _ = _run(model, parts, cache, n_prompt, 1, runs)
    return Bench(
        "prefill", n_prompt, 1, [n_prompt / result.ttft_s for result in results],
        flops_per_token=forward_flops(model.config, n_prompt) / n_prompt,
    )  # fmt: skip


def _step_bytes(model, cache, n_total: int) -> float:
    """Bytes of a decode step that brings a request to n_total tokens: weights once, and what this cache keeps of them."""
    n_computed = 1 if cache.keeps_past else n_total
    packed = getattr(model, "nbytes", None)  # of a model on packed weights, scales and padding included
    weights = packed or weight_bytes_read(model.config, n_computed, BITS_PER_BYTE * model.dtype.itemsize)
    return weights + cache.bytes_for(n_total)


def _run(model, parts, cache: str, n_prompt: int, n_output: int, runs: int) -> tuple[list, Engine]:
    """Results of `runs` generations after one that is thrown away, and their engine. Every run has its own prompt."""
    if runs < 1 or n_prompt < 1:
        raise ValueError(f"a benchmark needs at least one run and one prompt token; got {runs} and {n_prompt}")
    if n_prompt + n_output > model.config.context:
        raise PromptTooLong(
            f"{n_prompt:,} prompt and {n_output:,} output tokens do not fit into the context of {model.name}, "
            f"{model.config.context:,} tokens"
        )
    engine = Engine(model, parts, tokenizer=IdsOnly(model.config.eos_ids), cache=cache)
    params = SamplingParams(max_tokens=n_output, temperature=0, ignore_eos=True)
    draw = random.Random(_SEED)
    prompts = [[draw.randrange(model.config.vocab_size) for _ in range(n_prompt)] for _ in range(runs + 1)]
    return [engine.generate(prompt, params) for prompt in prompts][1:], engine
