"""The engine: prompts in, streamed tokens out. One counter drives it (see `Request`)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from llmcourse.cache import make_cache
from llmcourse.engine.prompts import IdsOnly, is_one_prompt, prompt_ids
from llmcourse.engine.request import Request, Result, TokenLogprobs
from llmcourse.engine.runner import Runner
from llmcourse.engine.sampling import SamplingParams, uniform
from llmcourse.engine.scheduler import Scheduler
from llmcourse.errors import CourseError, NonFiniteLogits
from llmcourse.model.llama import check_ids
from llmcourse.model.load import load_model, load_tokenizer
from llmcourse.ops import Parts, default_parts


@dataclass(frozen=True)
class Token:
    """One step of a stream.

    Args:
        id: the token chosen in this step.
        text: what became readable: empty while half a character or the start of a stop string is held back.
        seconds: since the previous token (the first: since the request arrived).
        logprobs: where they were asked for.
    """

    id: int
    text: str
    seconds: float
    logprobs: TokenLogprobs | None


class Engine:
    """Runs prompts through a model, many at once.

    Args:
        model: a loaded model, a name as for `load_model`, or None for the default model.
        parts: the table of parts; None takes the fastest tested one for the model's device.
        tokenizer: None takes the model's own. A model made by hand has none: it then takes and gives ids only.
        cache: the spec of a cache as for `make_cache`: "contiguous", "int8", "int4", "window:1024+4", … or "none" to
            compute every token anew in every step.
        device, dtype: as for `load_model`; only used where the engine loads the model itself.
        max_requests: the most requests that run at once; others wait.
        max_step_tokens: the most tokens in one step; longer prompts are computed in pieces. None leaves it
            to the cache: 512 for one that pays for long steps, no bound for the others.
    """

    def __init__(
        self,
        model=None,
        parts: Parts | None = None,
        *,
        tokenizer=None,
        cache: str = "contiguous",
        device: str = "auto",
        dtype: str = "auto",
        max_requests: int = 64,
        max_step_tokens: int | None = None,
    ):
        if model is None or isinstance(model, str):
            model = load_model(model, device=device, dtype=dtype)
        if tokenizer is None:
            tokenizer = load_tokenizer(model.source) if model.source else IdsOnly(model.config.eos_ids)
        if cache == "none" and max_step_tokens is not None:
            raise ValueError("without a cache a prompt cannot be computed in pieces: leave max_step_tokens at None")
        self.model = model
        self.parts = parts or default_parts(model.device.type)
        self.tokenizer = self.parts.tokenizer(tokenizer)
        kept = make_cache(cache, model.config, model.dtype, model.device)
        self.cache = self.parts.cache(kept)
        self.scheduler = Scheduler(max_requests, kept.step_tokens if max_step_tokens is None else max_step_tokens)
        self.runner = Runner(model.packed(self.parts.pack), self.parts, self.cache)
        self.eos_ids = frozenset(model.config.eos_ids) | tokenizer.eos_ids

    def generate(self, prompts, params: SamplingParams | Sequence[SamplingParams] | None = None, **settings):
        """Run prompts to their end.

        Args:
            prompts: one prompt or a list of them. A string is raw text, a list of messages
                (`{"role": "user", "content": "…"}`) a chat, a list of ints token ids.
            params: for all, or one for each. Instead of them, settings of `SamplingParams` by name. Where one is shared,
                prompt i draws stream i of the noise, so that equal prompts do not all get the same draws.

        Returns:
            a Result for one prompt, a list of Results for a list.

        Raises PromptTooLong, BadSamplingParams, NonFiniteLogits, OutOfMemory, ChatTemplateError. Nothing of the call is
        left in the engine then.
        """
        single = is_one_prompt(prompts)
        prompts = [prompts] if single else list(prompts)
        shared = not isinstance(params, Sequence)
        each = [one_of(params, settings)] * len(prompts) if shared else list(params)
        if len(each) != len(prompts):
            raise ValueError(f"{len(each)} SamplingParams for {len(prompts)} prompts: give one for all, or one for each")
        requests: list[Request] = []
        try:
            for i, (prompt, own) in enumerate(zip(prompts, each)):
                requests.append(self.add(prompt, own, stream=i if shared else 0))
            while any(request.finish_reason is None for request in requests):
                self.step()
        finally:
            for request in requests:
                self.cancel(request)
        results = [Result.of(request) for request in requests]
        return results[0] if single else results

    def stream(self, prompt, params: SamplingParams | None = None, **settings) -> Stream:
        """Run one prompt and hand out its tokens as they come; arguments and errors as for `generate`."""
        return Stream(self, self.add(prompt, one_of(params, settings)))

    def add(self, prompt, params: SamplingParams, stream: int = 0) -> Request:
        """Queue one prompt. `step` does the work; `generate` and `stream` call both.

        Raises PromptTooLong when the context leaves no room for a single new token.
        """
        ids = prompt_ids(prompt, self.tokenizer)
        check_ids(ids, self.model.config, room=1)
        request = Request(
            prompt_ids=ids,
            params=params,
            seed=secrets.randbits(62) if params.seed is None else params.seed,
            stream=stream,
            max_output=min(params.max_tokens, self.model.config.context - len(ids)),
            decoder=self.tokenizer.stream(params.stop),
            arrived=time.perf_counter(),
        )
        self.scheduler.add(request)
        return request

    def step(self) -> list[Request]:
        """One pass of the model over what the scheduler chose. Returns the requests that gained a token."""
        scheduled = self.scheduler.schedule()
        for request, _ in scheduled:
            if request.slot is None:
                request.slot = self.cache.open(len(request.prompt_ids) + request.max_output)
        advanced = self.runner.run(scheduled) if scheduled else []
        for request, logits in advanced:
            self._append(request, logits)
            if request.finish_reason is not None:
                self._release(request)
        return [request for request, _ in advanced]

    def cancel(self, request: Request) -> None:
        """Stop a request and free its memory; what it produced stays readable. Does nothing once it is finished."""
        if request.finish_reason is None:
            request.finish_reason = "cancelled"
            request.text += request.decoder.finish()
            self._release(request)

    def _append(self, request: Request, logits: Tensor) -> None:
        """Choose the next token from logits [V] and decide whether the request ends with it."""
        params, position = request.params, request.n_tokens
        try:
            u = uniform(request.seed, request.stream, position)
            token = self.parts.sample(logits, params, u, request.ids)
        except NonFiniteLogits as error:
            raise NonFiniteLogits(f"{request}, position {position}: {error}") from error
        request.ids.append(token)
        request.token_times.append(time.perf_counter())
        if params.logprobs is not None:
            request.logprobs.append(log_probabilities(logits, token, params.logprobs))
        if token in self.eos_ids and not params.ignore_eos:
            request.finish_reason = "stop"
        else:
            request.text += request.decoder.push(token)
            if request.decoder.stopped:
                request.finish_reason = "stop"
            elif request.n_output == request.max_output:
                request.finish_reason = "length"
        if request.finish_reason is not None:
            request.text += request.decoder.finish()

    def _release(self, request: Request) -> None:
        self.scheduler.remove(request)
        if request.slot is not None:
            self.cache.close(request.slot)
            request.slot = None


class Stream:
    """The tokens of one request, one by one: `for token in stream: print(token.text, end="")`.

    `close()`, or leaving a `with` block, cancels what is not finished. `result` is readable at any time.
    """

    def __init__(self, engine: Engine, request: Request):
        self.engine, self.request = engine, request
        self.n_given, self.n_characters = 0, 0

    def __iter__(self) -> Iterator[Token]:
        return self

    def __next__(self) -> Token:
        request = self.request
        try:
            while self.n_given == request.n_output:
                if request.finish_reason is not None:
                    raise StopIteration
                self.engine.step()
        except CourseError:
            self.close()
            raise
        i, times = self.n_given, request.token_times
        token = Token(
            id=request.ids[len(request.prompt_ids) + i],
            text=request.text[self.n_characters :],
            seconds=times[i] - (times[i - 1] if i else request.arrived),
            logprobs=request.logprobs[i] if request.logprobs else None,
        )
        self.n_given, self.n_characters = i + 1, len(request.text)
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


def one_of(params: SamplingParams | None, settings: dict) -> SamplingParams:
    """The params given, or made of settings by name. Raises TypeError for both at once."""
    if params is not None and settings:
        raise TypeError(f"give params or settings, not both; got params and {', '.join(settings)}")
    return params or SamplingParams(**settings)


def log_probabilities(logits: Float[Tensor, "V"], token: int, n_top: int) -> TokenLogprobs:
    """Log-probability of the chosen token and of the n_top likeliest, under softmax(logits)."""
    scores = logits.log_softmax(-1)
    values, ids = scores.topk(min(n_top, len(scores)))
    return TokenLogprobs(scores[token].item(), tuple(zip(ids.tolist(), values.tolist())))
