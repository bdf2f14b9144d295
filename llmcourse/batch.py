"""One step's work, as the model sees it: tokens of all requests lie end to end, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class Chunk:
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

    @property
    def length(self) -> int:
        """T: the tokens that the request has once this step is done."""
        return self.n_past + len(self.ids)


@dataclass(frozen=True)
class Batch:
    """What a step computes. R requests, n tokens in all; nothing in it changes while the step runs.

    Everything is there twice. What Python loops read (`chunks`, `rows`, the counts) lives on the host, so that no layer
    waits for the device. What kernels read lives on the device, as tensors made once a step.

    Args:
        chunks: the R chunks, one a request.
        bounds: R + 1 numbers; the tokens of request r are rows bounds[r] to bounds[r + 1].
        ids, positions: of each token; a position counts in the token's own request.
        starts: `bounds` as a tensor.
        lengths: T of each request.
        sample_rows: the rows whose logits are wanted, in order.
        tables: where the cache has a pool, the blocks of each request in order, padded with 0; else None.
        write: where the cache has a pool, each token's place in it, block · block size + offset; else None.
    """

    chunks: tuple[Chunk, ...]
    bounds: tuple[int, ...]
    ids: Int[Tensor, "n"]
    positions: Int[Tensor, "n"]
    starts: Int[Tensor, "R+1"]
    lengths: Int[Tensor, "R"]
    sample_rows: Int[Tensor, "m"]
    tables: Int[Tensor, "R B"] | None = None
    write: Int[Tensor, "n"] | None = None

    @classmethod
    def of(cls, chunks: Sequence[Chunk], cache=None, device: torch.device | str = "cpu") -> Batch:
        """Lay the chunks end to end.

        Args:
            cache: says which blocks of its pool belong to whom (`block_tables`); None where there is no pool.

        Raises ValueError for an empty list, or a chunk without tokens (an empty query has no logits to sample).
        """
        if not chunks or any(len(chunk.ids) == 0 for chunk in chunks):
            raise ValueError("a batch needs at least one chunk, and every chunk at least one token")
        bounds = tuple(accumulate((len(chunk.ids) for chunk in chunks), initial=0))
        positions = [position for chunk in chunks for position in range(chunk.n_past, chunk.length)]
        rows = [row for chunk, stop in zip(chunks, bounds[1:]) for row in range(stop - chunk.n_sample, stop)]
        blocks = None if cache is None else cache.block_tables(chunks)
        tables, write = (None, None) if blocks is None else _in_pool(chunks, blocks, cache.block_size)

        def tensor(values: Sequence, dtype: torch.dtype = torch.long) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=device)

        return cls(
            chunks=tuple(chunks),
            bounds=bounds,
            ids=tensor([token for chunk in chunks for token in chunk.ids]),
            positions=tensor(positions),
            starts=tensor(bounds, torch.int32),
            lengths=tensor([chunk.length for chunk in chunks], torch.int32),
            sample_rows=tensor(rows),
            tables=None if tables is None else tensor(tables, torch.int32),
            write=None if write is None else tensor(write),
        )

    @property
    def n_tokens(self) -> int:
        """n: tokens in this step."""
        return self.bounds[-1]

    @property
    def n_requests(self) -> int:
        """R: requests in this step."""
        return len(self.chunks)

    @property
    def n_sample_rows(self) -> int:
        """m: rows whose logits are wanted."""
        return len(self.sample_rows)

    def rows(self, r: int) -> slice:
        """The rows of request r."""
        return slice(self.bounds[r], self.bounds[r + 1])


def _in_pool(
    chunks: Sequence[Chunk], blocks: Sequence[Sequence[int]], block_size: int
) -> tuple[list[list[int]], list[int]]:
    """Tables of equal length, and the place of every token: token p of a request is in its block p // block_size."""
    most = max(map(len, blocks))
    tables = [[*own, *[0] * (most - len(own))] for own in blocks]
    write = [
        own[position // block_size] * block_size + position % block_size
        for chunk, own in zip(chunks, blocks)
        for position in range(chunk.n_past, chunk.length)
    ]
    return tables, write
