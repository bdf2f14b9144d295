"""Who computes how many tokens in the next step."""

from __future__ import annotations

from collections import deque

from llmcourse.engine.request import Request
from llmcourse.errors import OutOfMemory


class Scheduler:
    """First come, first served, counted in tokens.

    It knows neither prefill nor decode: every request has some tokens that are known and not computed, and a step computes
    some of them. Who needs a single one comes first, so that a long prompt cannot stop those that already stream; what is
    left of the step's budget goes to prompts, in pieces where they do not fit.

    Nobody waits for ever, however small the budget: among R running requests each is in at least one of any 2R
    consecutive steps. Who was in none of R steps is overdue; overdue ones go before all others, the longest wait first,
    and every step serves at least one.

    A request that pauses (nobody reads its tokens) keeps its place in the cache, and takes no turn and no place of
    `max_requests`. When memory is short, the one that came last is preempted, those that pause before the others: its slot
    is closed, and it is computed again later.

    Args:
        max_requests: the most requests in a step.
        max_step_tokens: the most tokens in a step; longer prompts take several steps. None sets no bound.
    """

    def __init__(self, max_requests: int = 64, max_step_tokens: int | None = None):
        for name, value in [("max_requests", max_requests), ("max_step_tokens", max_step_tokens)]:
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self.max_requests, self.max_step_tokens = max_requests, max_step_tokens
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.n_steps = 0

    def add(self, request: Request) -> None:
        """Put a request at the end of the queue."""
        self.waiting.append(request)

    def schedule(self, cache) -> list[tuple[Request, int]]:
        """The next step: pairs of a request and how many of its tokens to compute, at least 1 each, with room in the cache.

        Moves requests from waiting to running as long as there is room, and back where memory is short. A request that
        has all the memory to itself and does not fit ends with an error (`Request.fail`). Empty only when there is nothing
        to do.
        """
        self.n_steps += 1
        self._admit(cache)
        step: dict[Request, int] = {}
        budget = self.max_step_tokens
        for request in self._in_order():
            n = request.n_missing if budget is None else min(request.n_missing, budget)
            if n == 0 or len(step) == self.max_requests:
                break
            if request.slot is None or not self._make_room(request, n, cache):
                continue  # preempted by one before it, or just now
            step[request] = n
            budget = None if budget is None else budget - n
        chosen = [(request, n) for request, n in step.items() if request.slot is not None]
        for request, _ in chosen:
            request.last_step = self.n_steps
        return chosen

    def remove(self, request: Request, cache) -> None:
        """Forget a request, wherever it stands, and free its memory."""
        for queue in (self.running, self.waiting):
            if request in queue:
                queue.remove(request)
        _close(request, cache)

    def preempt(self, request: Request, cache) -> None:
        """Free a running request's memory; it waits, before all others, and will be computed again from its first token."""
        if request in self.running:
            self.running.remove(request)
            self.waiting.appendleft(request)
        request.n_computed = 0
        _close(request, cache)

    @property
    def n_unfinished(self) -> int:
        """Requests that wait or run."""
        return len(self.waiting) + len(self.running)

    def _admit(self, cache) -> None:
        """Let waiting requests begin, in order, those that pause left out, while there is memory for what they bring."""
        n_active = sum(not request.paused for request in self.running)
        for request in [request for request in self.waiting if not request.paused]:
            if n_active == self.max_requests or not self._begin(request, cache):
                return
            self.waiting.remove(request)
            if request.finish_reason is None:
                self.running.append(request)
                n_active += 1

    def _begin(self, request: Request, cache) -> bool:
        """Open a slot for a request; where there never will be memory for it, it ends. False: it has to wait."""
        while True:
            try:
                request.slot, request.n_computed = cache.open(request.ids, request.capacity)
            except OutOfMemory as error:
                paused = self._last_paused()
                if paused is not None:
                    self.preempt(paused, cache)
                    continue
                if self.running:
                    return False  # it begins when one of them ends
                request.fail(error)
            request.last_step = self.n_steps - 1  # as if it had just had a turn: those that stream go first
            return True

    def _last_paused(self) -> Request | None:
        return next((request for request in reversed(self.running) if request.paused), None)

    def _in_order(self) -> list[Request]:
        """Running requests by their turn: overdue ones, then those that miss one token, then prompts as they came."""
        active = [request for request in self.running if not request.paused]

        def turn(request: Request) -> tuple:
            overdue = self.n_steps - request.last_step > len(active)
            prompt = request.n_missing > 1
            return not overdue, not overdue and prompt, request.last_step if overdue or not prompt else 0

        return sorted(active, key=turn)

    def _make_room(self, request: Request, n: int, cache) -> bool:
        """Reserve memory for a request's next n tokens, if need be by preempting others. False: it had to go itself."""
        while not cache.reserve(request.slot, request.n_computed + n):
            if len(self.running) == 1:
                length = request.n_computed + n
                request.fail(OutOfMemory(
                    f"no memory for {request}: the keys and values of {length:,} tokens are {cache.bytes_for(length):,} bytes. "
                    "Ask for fewer tokens (max_tokens), a shorter prompt, or a smaller cache."
                ))  # fmt: skip
                self.remove(request, cache)
                return False
            last = self._last_paused() or self.running[-1]
            self.preempt(last, cache)
            if last is request:
                return False
        return True


def _close(request: Request, cache) -> None:
    slot, request.slot = request.slot, None
    if slot is not None:
        cache.close(slot)
