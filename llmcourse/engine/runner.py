"""Runs one step: from a schedule to logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from llmcourse.batch import Batch, Piece
from llmcourse.engine.request import Request
from llmcourse.errors import OutOfMemory
from llmcourse.ops import Parts


class Runner:
    """Holds what a step needs: the model, the table of parts, the cache."""

    def __init__(self, model, parts: Parts, cache):
        self.model, self.parts, self.cache = model, parts, cache

    def run(self, step: Sequence[tuple[Request, int]]) -> list[tuple[Request, Tensor]]:
        """Compute the scheduled tokens and advance `n_computed`.

        Returns:
            the requests that are now complete up to their last token, each with the logits that follow it, [V].

        Raises OutOfMemory naming the size that PyTorch asked for.
        """
        pieces = [
            Piece(request.pending_ids(n), request.n_computed, request.slot, n_sample=int(n == request.n_missing))
            for request, n in step
        ]
        batch = Batch.of(pieces, self.model.device)
        try:
            logits = self.model.forward(batch, self.cache, self.parts)
        except RuntimeError as error:
            if isinstance(error, torch.OutOfMemoryError) or "not enough memory" in str(error):
                raise OutOfMemory(
                    f"no memory for a step of {batch.n_tokens:,} tokens: {str(error).splitlines()[0]} "
                    "Bound the step with Engine(max_step_tokens=…), or run fewer requests at once."
                ) from error
            raise
        complete = [request for (request, _), piece in zip(step, pieces) if piece.n_sample]
        for request, n in step:
            request.n_computed = request.n_computed + n if self.cache.keeps_past else 0
        return list(zip(complete, logits))
