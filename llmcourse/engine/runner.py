"""Runs one step: from a schedule to logits."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from llmcourse.batch import Batch, Chunk
from llmcourse.engine.request import Request
from llmcourse.errors import naming_memory
from llmcourse.ops import Limits, Parts


class Runner:
    """Holds what a step needs: the cache, and the table's step on this model and cache."""

    def __init__(self, model, parts: Parts, cache, limits: Limits):
        self.cache, self.device = cache, model.device
        self.compute = model.prepared(parts, cache, limits)

    def run(self, step: Sequence[tuple[Request, int]]) -> list[tuple[Request, Tensor]]:
        """Compute the scheduled tokens and advance `n_computed`.

        Returns:
            the requests that are now complete up to their last token, each with the logits that follow it, [V].

        Raises OutOfMemory naming the size that PyTorch asked for, and whatever a stage raises. Nothing is advanced then,
        and what the cache holds of these requests is worth nothing.
        """
        chunks = [
            Chunk(request.pending_ids(n), request.n_computed, request.slot, n_sample=int(n == request.n_missing))
            for request, n in step
        ]
        batch = Batch.of(chunks, self.cache, self.device)
        way_out = "Bound the step with Engine(max_step_tokens=…), or run fewer requests at once."
        with naming_memory(f"a step of {batch.n_tokens:,} tokens. {way_out}"):
            logits = self.compute(batch)
        if self.cache.keeps_past:
            for (request, n), chunk in zip(step, chunks):
                request.n_computed += n
                self.cache.commit(request.slot, chunk.ids)
        return list(zip((request for (request, _), chunk in zip(step, chunks) if chunk.n_sample), logits))
