"""The pool of keys and values that the compiled step of `ops/numba` reads: blocks of 16 tokens, handed out to requests as they grow.

Layout, fixed: keys [L, blocks, Hkv, D, 16], values [L, blocks, Hkv, 16, D]. A register holds 16 tokens of one channel of the
keys, and 16 channels of one token of the values, so that neither a score nor a mix needs a sum across a register's lanes.
Block 0 is never handed out: tables are filled up with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from llmcourse.batch import Batch, Chunk
from llmcourse.cache.base import KVCache, window_of, within
from llmcourse.errors import OutOfMemory

BLOCK = 16


@dataclass
class Held:
    """One request: its blocks in the order of its tokens, and the most tokens that it may be given."""

    capacity: int
    blocks: list[int] = field(default_factory=list)


class PoolCache(KVCache):
    """Keys and values of all requests in one pool. A token can be taken back: `truncate`.

    Args:
        config: n_layers, n_kv_heads, head_dim are read.
        dtype: torch.float16 or torch.float32, the numbers that are kept.
        n_tokens: how many tokens fit, of all requests together. The memory is taken as blocks are first written.
    """

    kind, can_truncate, block_size = "pool", True, BLOCK

    def __init__(self, config, dtype: torch.dtype = torch.float16, device: torch.device | str = "cpu", n_tokens: int = 65_536):
        self.config, self.dtype, self.device = config, dtype, torch.device(device)
        n_blocks = 1 + -(-n_tokens // BLOCK)
        shape = (config.n_layers, n_blocks, config.n_kv_heads)
        number = {torch.float16: np.float16, torch.float32: np.float32}[dtype]
        try:
            self.keys = np.zeros((*shape, config.head_dim, BLOCK), number)
            self.values = np.zeros((*shape, BLOCK, config.head_dim), number)
        except MemoryError as error:
            raise OutOfMemory(f"no memory for a pool of {n_tokens:,} tokens: {self.bytes_for(n_tokens):,} bytes") from error
        self.free = list(range(n_blocks - 1, 0, -1))  # the end of the list is handed out first
        self.slots: dict[int, Held] = {}

    def open(self, ids: Sequence[int], capacity: int) -> tuple[int, int]:
        """A slot for a request of at most `capacity` tokens, and 0: nothing of it is here yet."""
        slot = next(number for number in range(len(self.slots) + 1) if number not in self.slots)
        self.slots[slot] = Held(capacity)
        return slot, 0

    def reserve(self, slot: int, length: int) -> bool:
        """Make room for `length` tokens. False when the pool has too few free blocks; then nothing has changed."""
        held = self.slots[slot]
        missing = -(-length // BLOCK) - len(held.blocks)
        if missing > len(self.free):
            return False
        held.blocks += [self.free.pop() for _ in range(missing)]
        return True

    def truncate(self, slot: int, n: int) -> None:
        """Keep the first n tokens of a request and give the other blocks back."""
        held, kept = self.slots[slot], -(-n // BLOCK)
        self.free += reversed(held.blocks[kept:])
        del held.blocks[kept:]

    def close(self, slot: int) -> None:
        """Give a request's blocks back. Raises KeyError for a slot that is not open."""
        self.free += reversed(self.slots.pop(slot).blocks)

    def block_tables(self, chunks: Sequence[Chunk]) -> list[list[int]]:
        """The blocks of each request of a step, in the order of its tokens. Raises ValueError where a request has more tokens
        than were reserved."""
        tables = []
        for chunk in chunks:
            length, blocks = chunk.n_past + len(chunk.ids), self.slots[chunk.slot].blocks
            if length > len(blocks) * BLOCK:
                raise ValueError(f"{length} tokens do not fit into slot {chunk.slot}: {len(blocks) * BLOCK} are reserved")
            tables.append(blocks[: -(-length // BLOCK)])
        return tables

    def update(self, layer: int, k: Tensor, v: Tensor, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """Write a layer's keys and values [n, Hkv, D], and gather what each request has: for tables of stages, which know
        nothing of pools. A step that was prepared reads and writes the pool itself."""
        keys, values = torch.from_numpy(self.keys[layer]), torch.from_numpy(self.values[layer])
        block, place = batch.write // BLOCK, batch.write % BLOCK
        keys[block, :, :, place] = k.to(self.dtype)
        values[block, :, place] = v.to(self.dtype)
        entries = []
        for table, chunk in zip(batch.tables.long(), batch.chunks):
            blocks = table[: -(-chunk.length // BLOCK)]
            K = keys[blocks].permute(0, 3, 1, 2).flatten(0, 1)[: chunk.length]
            V = values[blocks].permute(0, 2, 1, 3).flatten(0, 1)[: chunk.length]
            entries.append(within((K.to(k.dtype), V.to(v.dtype)), len(chunk.ids), window_of(self.config, layer)))
        return entries

    def bytes_for(self, n_tokens: int) -> int:
        """Bytes of keys and values of n tokens of one request, over all layers."""
        config = self.config
        return 2 * config.n_layers * config.n_kv_heads * config.head_dim * n_tokens * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks that requests hold now."""
        return self.bytes_for(BLOCK * sum(len(held.blocks) for held in self.slots.values()))
