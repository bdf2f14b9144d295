"""One request on its way through the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from llmcourse.engine.sampling import SamplingParams

MOST_UNREAD = 16  # tokens of a stream that nobody reads; after them it pauses


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
        make_decoder: makes a StreamDecoder for its output.
        arrived: seconds on the engine's clock.

    slot: where the cache keeps it; None while it waits. last_step: the scheduler's step in which it had its last turn.
    texts: what became readable with each token; text: all of them, and what was held back until the end.
    n_read: tokens that the reader of its stream has taken; None where nobody reads one by one.
    error: why it ended, where finish_reason is "error".
    """

    prompt_ids: list[int]
    params: SamplingParams
    seed: int
    stream: int
    max_output: int
    make_decoder: Callable[[], object]
    arrived: float
    slot: int | None = None
    n_computed: int = 0
    last_step: int = 0
    n_read: int | None = None
    ids: list[int] = field(init=False)
    token_times: list[float] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    text: str = ""
    finish_reason: str | None = None
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.ids = list(self.prompt_ids)
        self._decoder = self.make_decoder()

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

    @property
    def capacity(self) -> int:
        """The most tokens that it can come to have."""
        return len(self.prompt_ids) + self.max_output

    @property
    def paused(self) -> bool:
        """Whether it takes no turn, since the reader of its stream has left so many tokens unread."""
        return self.n_read is not None and self.n_output - self.n_read >= MOST_UNREAD

    def pending_ids(self, n: int) -> list[int]:
        """The next n tokens to compute."""
        return self.ids[self.n_computed : self.n_computed + n]

    def append(self, token: int, ends_text: bool, seconds: float, logprobs: TokenLogprobs | None) -> None:
        """Take the next token, and what becomes readable with it: all at once, or nothing where the decoder raises.

        ends_text: it is an end-of-text token, which is no text itself.
        """
        try:
            text = "" if ends_text else self._decoder.push(token)
            if ends_text or self._decoder.stopped:
                reason = "stop"
            else:
                reason = "length" if self.n_output + 1 == self.max_output else None
            if reason is not None:
                text += self._decoder.finish()
        except BaseException:
            self._rewind()
            raise
        if logprobs is not None:
            self.logprobs.append(logprobs)
        self.token_times.append(seconds)
        self.texts.append(text)
        self.text += text
        self.finish_reason = reason
        self.ids.append(token)  # the last: who sees the token sees all that belongs to it

    def end(self, reason: str, error: Exception | None = None) -> None:
        """End it before its last token; text that was held back is shown. Does nothing to one that has ended."""
        if self.finish_reason is None:
            self.finish_reason, self.error = reason, error
            try:
                self.text += self._decoder.finish()
            except Exception as broken:  # a learner's decoder: what it held back is lost, and the request ends all the same
                self.error = self.error or broken

    def fail(self, error: Exception) -> None:
        """End it with an error, which is raised to whoever asked for it."""
        self.end("error", error)

    def _rewind(self) -> None:
        """A decoder that knows the output so far and nothing else, in place of one that was interrupted."""
        self._decoder = self.make_decoder()
        for token in self.output_ids:
            self._decoder.push(token)


@dataclass(frozen=True)
class Result:
    """What became of one prompt.

    Args:
        text: the output as text, without end-of-text token and stop string.
        prompt_ids, output_ids: token ids; output_ids holds every token that was generated, an end-of-text token included.
        finish_reason: "stop" (end-of-text token or stop string), "length" (max_tokens or end of the context),
            "cancelled", or "error".
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
