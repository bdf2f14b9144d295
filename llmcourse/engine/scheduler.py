"""Who computes how many tokens in the next step."""

from __future__ import annotations

from collections import deque

from llmcourse.engine.request import Request


class Scheduler:
    """First come, first served, counted in tokens.

    It knows neither prefill nor decode: every request has some tokens that are known and not computed, and a step computes
    some of them. Running requests come first, so that a long prompt cannot stop those that already stream; what is left of
    the step's budget goes to prompts, in pieces where they do not fit.

    Args:
        max_requests: the most requests that run at once.
        max_step_tokens: the most tokens in a step; longer prompts take several steps. None sets no bound.
    """

    def __init__(self, max_requests: int = 64, max_step_tokens: int | None = None):
        for name, value in [("max_requests", max_requests), ("max_step_tokens", max_step_tokens)]:
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self.max_requests, self.max_step_tokens = max_requests, max_step_tokens
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []

    def add(self, request: Request) -> None:
        """Put a request at the end of the queue."""
        self.waiting.append(request)

    def schedule(self) -> list[tuple[Request, int]]:
        """The next step: pairs of a request and how many of its tokens to compute, at least 1 each.

        Moves requests from waiting to running as long as there is room. Empty only when there is no work at all.
        """
        while self.waiting and len(self.running) < self.max_requests:
            self.running.append(self.waiting.popleft())
        budget = self.max_step_tokens or sum(request.n_missing for request in self.running)
        step = []
        for request in sorted(self.running, key=lambda request: request.n_missing > 1):
            n = min(request.n_missing, budget)
            if n > 0:
                step.append((request, n))
                budget -= n
        return step

    def remove(self, request: Request) -> None:
        """Forget a request, wherever it stands. Raises ValueError when it is not here."""
        queue = self.running if request in self.running else self.waiting
        queue.remove(request)

    @property
    def n_unfinished(self) -> int:
        """Requests that wait or run."""
        return len(self.waiting) + len(self.running)
