"""The engine: prompts in, streamed tokens out. One counter drives it (see `Request`)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.engine.prompts import IdsOnly, is_one_prompt, prompt_ids
from llmcourse.engine.request import Request, Result, TokenLogprobs
from llmcourse.engine.runner import Runner
from llmcourse.engine.sampling import SamplingParams, one_of, params_of, uniform
from llmcourse.engine.scheduler import Scheduler
from llmcourse.engine.token_stream import Stream
from llmcourse.engine.turn import Turn
from llmcourse.errors import NonFiniteLogits
from llmcourse.model.llama import check_ids
from llmcourse.model.load import load_model, load_tokenizer
from llmcourse.ops import Limits, Parts


class Engine:
    """Runs prompts through a model, many at once.

    Threads may share an engine: a step, and whatever adds or cancels a request, is one thread's at a time, and the others
    wait. Each call gets its own requests' tokens and errors, whoever's step computed them.

    Args:
        model: a loaded model, a name as for `load_model`, or None for the default model.
        parts: the table of parts; None takes the fastest tested one for the model's device.
        tokenizer: None takes the model's own. A model made by hand has none: it then takes and gives ids only.
        cache: the spec of a cache as for `make_cache`: "contiguous", "int8", "int4", "window:1024+4", … or "none" to
            compute every token anew in every step.
        device, dtype: as for `load_model`; only used where the engine loads the model itself.
        quant: "native" computes on a GGUF file's own packed weights, which are never expanded; "none" loads floats. Also only
            used where the engine loads the model itself.
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
        quant: str = "none",
        max_requests: int = 64,
        max_step_tokens: int | None = None,
    ):
        if model is None or isinstance(model, str):
            model = load_model(model, device=device, dtype=dtype, quant=quant)
        if tokenizer is None:
            tokenizer = load_tokenizer(model.source) if model.source else IdsOnly(model.config.eos_ids)
        if cache == "none" and max_step_tokens is not None:
            raise ValueError("without a cache a prompt cannot be computed in pieces: leave max_step_tokens at None")
        self.model = model
        self.parts = parts or model.parts
        self.tokenizer = self.parts.tokenizer(tokenizer)
        kept = model.new_cache(cache, self.parts)
        self.cache = self.parts.cache(kept)
        self.scheduler = Scheduler(max_requests, kept.step_tokens if max_step_tokens is None else max_step_tokens)
        context = model.config.context
        limits = Limits(max_requests, self.scheduler.max_step_tokens or max_requests * context, context)
        self.runner = Runner(model, self.parts, self.cache, limits)
        self.eos_ids = frozenset(model.config.eos_ids) | tokenizer.eos_ids
        self._turn = Turn()
        self._abandoned: list[Request] = []

    def generate(self, prompts, params: SamplingParams | Sequence[SamplingParams] | None = None, **settings):
        """Run prompts to their end.

        Args:
            prompts: one prompt or a list of them. A string is raw text, a list of messages
                (`{"role": "user", "content": "…"}`) a chat, a list of ints token ids.
            params: for all, or one for each. Instead of them, settings of `SamplingParams` by name. Where one is shared,
                prompt i draws stream i of the noise, so that equal prompts do not all get the same draws.

        Returns:
            a Result for one prompt, a list of Results for a list.

        Raises PromptTooLong, BadSamplingParams, NonFiniteLogits, OutOfMemory, ChatTemplateError, and what a stage or a
        sampler of your own raises. Nothing of the call is left in the engine then, nor after Ctrl-C; other requests go on.
        """
        single = is_one_prompt(prompts)
        prompts = [prompts] if single else list(prompts)
        each, shared = params_of(params, settings, len(prompts))
        requests = [self.request(prompt, own, i if shared else 0) for i, (prompt, own) in enumerate(zip(prompts, each))]
        try:
            for request in requests:
                self._queue(request)
            while any(request.finish_reason is None for request in requests):
                self.step()
                self._raise_errors(requests)
        finally:
            for request in requests:
                self.cancel(request)
        results = [Result.of(request) for request in requests]
        return results[0] if single else results

    def stream(self, prompt, params: SamplingParams | None = None, **settings) -> Stream:
        """Run one prompt and hand out its tokens as they come; arguments and errors as for `generate`."""
        stream = Stream(self, self.request(prompt, one_of(params, settings)))
        self._queue(stream.request)
        return stream

    def add(self, prompt, params: SamplingParams, stream: int = 0) -> Request:
        """Queue one prompt. `step` does the work; `generate` and `stream` do both.

        Raises as `request`.
        """
        request = self.request(prompt, params, stream)
        self._queue(request)
        return request

    def request(self, prompt, params: SamplingParams, stream: int = 0) -> Request:
        """What `add` queues.

        Raises PromptTooLong when the context leaves no room for a single new token, OutOfMemory when the cache never will
        have room for all that it may generate.
        """
        ids = prompt_ids(prompt, self.tokenizer)
        check_ids(ids, self.model.config, room=1)
        max_output = min(params.max_tokens, self.model.config.context - len(ids))
        self.cache.check_capacity(len(ids) + max_output)
        return Request(
            prompt_ids=ids,
            params=params,
            seed=secrets.randbits(62) if params.seed is None else params.seed,
            stream=stream,
            max_output=max_output,
            make_decoder=lambda: self.tokenizer.stream(params.stop, skip_special_tokens=params.skip_special_tokens),
            arrived=time.perf_counter(),
        )

    def step(self) -> list[Request]:
        """One pass of the model over what the scheduler chose. Returns the requests that gained a token.

        A request whose next token cannot be chosen ends with finish_reason "error" and its `error`; the others go on.
        Where the pass itself fails, the exception is raised here, and all requests of the step will be computed again.
        """
        with self._turn:
            self._forget_abandoned()
            scheduled = self.scheduler.schedule(self.cache)
            try:
                complete = self.runner.run(scheduled) if scheduled else []
                for (request, logits), token in zip(complete, self._choose(complete)):
                    self._append(request, logits, token)
            except BaseException:
                for request, _ in scheduled:
                    self.scheduler.preempt(request, self.cache)
                raise
            finally:
                for request, _ in scheduled:
                    if request.finish_reason is not None:
                        self.scheduler.remove(request, self.cache)
                self._forget_abandoned()
            return [request for request, _ in complete if request.error is None]

    def cancel(self, request: Request) -> None:
        """Stop a request and free its memory; what it produced stays readable. Does nothing once it is finished."""
        with self._turn:
            self._stop(request)

    def abandon(self, request: Request) -> None:
        """Cancel a request now, or at the end of the step that is running: whoever asked for it is gone."""
        if request.finish_reason is not None:
            return
        self._abandoned.append(request)
        if self._turn.now():
            try:
                self._forget_abandoned()
            finally:
                self._turn.end()

    def _queue(self, request: Request) -> None:
        with self._turn:
            self.scheduler.add(request)

    def _stop(self, request: Request) -> None:
        self.scheduler.remove(request, self.cache)
        request.end("cancelled")

    def _forget_abandoned(self) -> None:
        while self._abandoned:
            self._stop(self._abandoned.pop())

    def _choose(self, complete: Sequence[tuple[Request, Tensor]]) -> Iterator[int | Exception]:
        """The next token of each request after its logits, or why there is none.

        A sampler for many rows is tried first. Where one of them is bad, each is asked for alone, and the fault is its own.
        """
        us = [uniform(request.seed, request.stream, request.n_tokens) for request, _ in complete]
        if self.parts.sample_rows is not None and len(complete) > 1:
            logits, params = torch.stack([row for _, row in complete]), [request.params for request, _ in complete]
            try:
                tokens = self.parts.sample_rows(logits, params, us, [request.ids for request, _ in complete])
            except Exception:
                pass  # asked for alone, below, the bad row says what is wrong with it
            else:
                yield from tokens
                return
        for (request, row), u in zip(complete, us):
            try:
                yield self.parts.sample(row, request.params, u, request.ids)
            except Exception as error:
                yield error

    def _append(self, request: Request, logits: Tensor, token: int | Exception) -> None:
        """Give a request its next token, or end it with the error that came instead."""
        params = request.params
        try:
            if isinstance(token, Exception):
                raise token
            logprobs = None if params.logprobs is None else log_probabilities(logits, token, params.logprobs)
            ends_text = token in self.eos_ids and not params.ignore_eos
            request.append(token, ends_text, time.perf_counter(), logprobs)
        except NonFiniteLogits as error:
            named = NonFiniteLogits(f"{request}, position {request.n_tokens}: {error}")
            named.__cause__ = error
            request.fail(named)
        except Exception as error:
            request.fail(error)

    def _raise_errors(self, requests: Sequence[Request]) -> None:
        for request in requests:
            if request.error is not None:
                raise request.error


def log_probabilities(logits: Float[Tensor, "V"], token: int, n_top: int) -> TokenLogprobs:
    """Log-probability of the chosen token and of the n_top likeliest, under softmax(logits)."""
    scores = logits.log_softmax(-1)
    values, ids = scores.topk(min(n_top, len(scores)))
    return TokenLogprobs(scores[token].item(), tuple(zip(ids.tolist(), values.tolist())))
