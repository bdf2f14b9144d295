"""One request on its way through the engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from llmcourse.engine.sampling import SamplingParams


@dataclass(frozen=True)
class TokenLogprobs:
    """Log-probabilities at one position, under the model's own distribution.

    Args:
        chosen: of the token that was chosen.
        top: (id, log-probability) of the likeliest tokens, likeliest first.
    """

    chosen: float
    top: tuple[tuple[int, float], ...]


@dataclass(eq=False)
class Request:
    """Two counters say everything about progress: `n_tokens` (known) and `n_computed` (in the cache).

    A prompt not yet prefilled has n_computed = 0; a decoding request has n_computed = n_tokens − 1. Each step computes
    some of the difference. Two requests are equal only when they are the same one.

    Args:
        ids: prompt and output, end to end.
        seed, stream: key of its noise (see `sampling.uniform`).
        max_output: max_tokens, or less where the model's context ends earlier.
        decoder: its StreamDecoder.
        arrived: seconds on the engine's clock.
    """

    prompt_ids: list[int]
    params: SamplingParams
    seed: int
    stream: int
    max_output: int
    decoder: object
    arrived: float
    slot: int | None = None
    n_computed: int = 0
    ids: list[int] = field(init=False)
    token_times: list[float] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    text: str = ""
    finish_reason: str | None = None

    def __post_init__(self) -> None:
        self.ids = list(self.prompt_ids)

    def __str__(self) -> str:
        return f"the request with {len(self.prompt_ids)} prompt tokens, beginning {self.prompt_ids[:5]}"

    @property
    def output_ids(self) -> list[int]:
        """The tokens generated so far."""
        return self.ids[len(self.prompt_ids) :]

    @property
    def n_output(self) -> int:
        """How many tokens were generated so far."""
        return len(self.ids) - len(self.prompt_ids)

    @property
    def n_tokens(self) -> int:
        """Tokens known so far."""
        return len(self.ids)

    @property
    def n_missing(self) -> int:
        """Tokens known but not yet computed."""
        return len(self.ids) - self.n_computed

    def pending_ids(self, n: int) -> list[int]:
        """The next n tokens to compute."""
        return self.ids[self.n_computed : self.n_computed + n]


@dataclass(frozen=True)
class Result:
    """What became of one prompt.

    Args:
        text: the output as text, without end-of-text token and stop string.
        prompt_ids, output_ids: token ids; output_ids holds every token that was generated, an end-of-text token included.
        finish_reason: "stop" (end-of-text token or stop string), "length" (max_tokens or end of the context) or
            "cancelled".
        ttft_s: time to first token: seconds from the request's arrival to its first token; None without a token.
        itl_s: inter-token latencies: seconds between one token and the next, one fewer than output tokens.
        tokens_per_s: output tokens divided by the seconds from arrival to the last token; 0 without a token.
        logprobs: one entry per output token where they were asked for, else empty.
    """

    text: str
    prompt_ids: list[int]
    output_ids: list[int]
    finish_reason: str
    ttft_s: float | None
    itl_s: list[float]
    tokens_per_s: float
    logprobs: list[TokenLogprobs]

    @classmethod
    def of(cls, request: Request) -> Result:
        """Gather a finished or cancelled request."""
        times = request.token_times
        return cls(
            text=request.text,
            prompt_ids=request.prompt_ids,
            output_ids=request.output_ids,
            finish_reason=request.finish_reason or "cancelled",
            ttft_s=times[0] - request.arrived if times else None,
            itl_s=[after - before for before, after in zip(times, times[1:])],
            tokens_per_s=len(times) / (times[-1] - request.arrived) if times else 0.0,
            logprobs=request.logprobs,
        )
