"""What a step computes, laid end to end: on the host for loops, on the device for kernels."""

from __future__ import annotations

import pytest
import torch

from llmcourse.batch import Batch, Chunk
from llmcourse.cache import KVCache

PIECES = [Chunk([7, 8, 9], n_past=4, slot=2, n_sample=0), Chunk([5], n_past=16, slot=0), Chunk([1, 2], n_sample=2, slot=1)]


def test_tokens_of_all_pieces_lie_end_to_end():
    batch = Batch.of(PIECES)
    assert batch.ids.tolist() == [7, 8, 9, 5, 1, 2] and batch.positions.tolist() == [4, 5, 6, 16, 0, 1]
    assert batch.starts.tolist() == [0, 3, 4, 6] and batch.lengths.tolist() == [7, 17, 2]
    assert batch.sample_rows.tolist() == [3, 4, 5]
    assert (batch.n_tokens, batch.n_requests, batch.n_sample_rows) == (6, 3, 3)
    assert [batch.rows(r) for r in range(3)] == [slice(0, 3), slice(3, 4), slice(4, 6)]
    assert [piece.length for piece in batch.chunks] == [7, 17, 2]


def test_dtypes_are_those_that_kernels_read():
    batch = Batch.of(PIECES)
    assert {batch.ids.dtype, batch.positions.dtype, batch.sample_rows.dtype} == {torch.int64}
    assert {batch.starts.dtype, batch.lengths.dtype} == {torch.int32}
    assert batch.tables is None and batch.write is None


def test_a_pool_gives_tables_and_the_place_of_every_token():
    """Oracle: by hand. Blocks of 4 tokens; position 4 of the first request is the first of its second block, 9."""

    class Pool(KVCache):
        block_size = 4

        def block_tables(self, pieces):
            return [{2: [3, 9], 0: [8, 7, 1, 2, 6], 1: [5]}[piece.slot] for piece in pieces]

    batch = Batch.of(PIECES, Pool())
    assert batch.tables.tolist() == [[3, 9, 0, 0, 0], [8, 7, 1, 2, 6], [5, 0, 0, 0, 0]]
    assert batch.write.tolist() == [36, 37, 38, 24, 20, 21]
    assert batch.tables.dtype == torch.int32 and batch.write.dtype == torch.int64


@pytest.mark.parametrize("pieces", [[], [Chunk([1]), Chunk([])]], ids=["no pieces", "an empty piece"])
def test_a_step_without_tokens_is_refused(pieces):
    with pytest.raises(ValueError, match="at least one"):
        Batch.of(pieces)
