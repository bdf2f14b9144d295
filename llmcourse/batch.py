"""One step's work, as the model sees it: tokens of all requests lie end to end, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class Piece:
    """The tokens of one request that one step computes.

    Args:
        ids: the tokens themselves, at least one.
        n_past: how many tokens of the request were computed before.
        slot: the number under which the cache keeps this request.
        n_sample: of how many of the last tokens the logits are wanted (0 while a prompt is not finished).
    """

    ids: Sequence[int]
    n_past: int = 0
    slot: int = 0
    n_sample: int = 1


@dataclass(frozen=True)
class Batch:
    """What a step computes. R requests, n tokens in all; nothing in it changes while the step runs.

    What Python loops read lives on the host as tuples, so that no layer waits for the device; what kernels read lives
    on the device as tensors.

    Args:
        ids: token ids of all requests, end to end.
        positions: the position of each token in its own request.
        offsets: R + 1 numbers; the tokens of request r are rows offsets[r] to offsets[r + 1].
        lengths: R numbers; T of each request: the tokens it has once this step is done.
        slots: R numbers; where the cache keeps each request.
        sample_rows: the rows whose logits are wanted, in order.
    """

    ids: Int[Tensor, "n"]
    positions: Int[Tensor, "n"]
    offsets: tuple[int, ...]
    lengths: tuple[int, ...]
    slots: tuple[int, ...]
    sample_rows: tuple[int, ...]

    @classmethod
    def of(cls, pieces: Sequence[Piece], device: torch.device | str = "cpu") -> Batch:
        """Lay the pieces end to end.

        Raises ValueError for an empty list, or a piece without tokens (an empty query has no logits to sample).
        """
        if not pieces or any(len(piece.ids) == 0 for piece in pieces):
            raise ValueError("a batch needs at least one piece, and every piece at least one token")
        ids, positions, offsets, rows = [], [], [0], []
        for piece in pieces:
            ids.extend(piece.ids)
            positions.extend(range(piece.n_past, piece.n_past + len(piece.ids)))
            offsets.append(len(ids))
            rows.extend(range(len(ids) - piece.n_sample, len(ids)))
        return cls(
            ids=torch.tensor(ids, dtype=torch.long, device=device),
            positions=torch.tensor(positions, dtype=torch.long, device=device),
            offsets=tuple(offsets),
            lengths=tuple(piece.n_past + len(piece.ids) for piece in pieces),
            slots=tuple(piece.slot for piece in pieces),
            sample_rows=tuple(rows),
        )

    @property
    def n_tokens(self) -> int:
        """n: tokens in this step."""
        return self.offsets[-1]

    @property
    def n_requests(self) -> int:
        """R: requests in this step."""
        return len(self.lengths)

    def rows(self, r: int) -> slice:
        """The rows of request r."""
        return slice(self.offsets[r], self.offsets[r + 1])
