"""The tokens of one request, handed out one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmcourse.engine.request import Request, Result, TokenLogprobs

if TYPE_CHECKING:
    from llmcourse.engine.engine import Engine


@dataclass(frozen=True)
class Token:
    """One step of a stream.

    Args:
        id: the token chosen in this step.
        text: what became readable with it: empty while half a character or the start of a stop string is held back.
        seconds: since the previous token (the first: since the request arrived).
        logprobs: where they were asked for.
    """

    id: int
    text: str
    seconds: float
    logprobs: TokenLogprobs | None


class Stream:
    """The tokens of one request, one by one: `for token in stream: print(token.text, end="")`.

    `close()`, or leaving a `with` block, cancels what is not finished; so does dropping the stream, as a `break` out of
    `for token in engine.stream(…)` does. One that is kept and not read pauses after 16 unread tokens, and goes on when it
    is read. `result` is readable at any time.
    """

    def __init__(self, engine: Engine, request: Request):
        self.engine, self.request = engine, request
        request.n_read = 0
        self._raised = False  # an error is raised once; after it the stream has ended

    def __iter__(self) -> Iterator[Token]:
        return self

    def __next__(self) -> Token:
        request, i = self.request, self.request.n_read
        try:
            while i == request.n_output:
                if request.error is not None and not self._raised:
                    self._raised = True
                    raise request.error
                if request.finish_reason is not None:
                    raise StopIteration
                self.engine.step()
        except StopIteration:
            raise
        except BaseException:
            self.close()
            raise
        times = request.token_times
        token = Token(
            id=request.ids[len(request.prompt_ids) + i],
            text=request.texts[i],
            seconds=times[i] - (times[i - 1] if i else request.arrived),
            logprobs=request.logprobs[i] if request.logprobs else None,
        )
        request.n_read = i + 1
        return token

    @property
    def result(self) -> Result:
        """What there is so far; its finish_reason is "cancelled" until the stream has ended."""
        return Result.of(self.request)

    def close(self) -> None:
        """Cancel the request unless it is finished."""
        self.engine.cancel(self.request)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_exception) -> None:
        self.close()

    def __del__(self) -> None:
        self.engine.abandon(self.request)
