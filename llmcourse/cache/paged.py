"""Paged KV cache: one pool of memory in blocks of 16 tokens, given to requests as their tokens come, shared where texts begin alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.batch import Batch, Chunk
from llmcourse.cache.base import KVCache, window_of, within
from llmcourse.cache.blocks import BlockPool
from llmcourse.errors import OutOfMemory, naming_memory

BLOCK_SIZE = 16  # tokens
DEFAULT_BYTES = 512 * 2**20  # of a pool whose size nobody asked for


@dataclass
class Table:
    """One request: its blocks in order, its final tokens, and the most tokens that it may have."""

    blocks: list[int]
    capacity: int
    ids: list[int] = field(default_factory=list)


class PagedCache(KVCache):
    """Keys and values of all requests in one pool of blocks; a request's block table says which are its own.

    Two tensors [L, blocks, 16, Hkv, D] are made once and never grow: the pool is the whole memory. A request takes a block
    whenever 16 more of its tokens come, so at most 15 places of each request are empty. Blocks that were computed stay
    findable after their request has ended; a text that begins like an earlier one starts with its blocks.

    Args:
        config: n_layers, n_kv_heads, head_dim and value_dim are read.
        n_blocks: blocks of the pool, block 0 included, which is nobody's; None makes a pool of about 512 MB.

    Source: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with PagedAttention".
    """

    kind, can_truncate, block_size = "paged", True, BLOCK_SIZE

    def __init__(self, config, dtype: torch.dtype, device: torch.device | str, n_blocks: int | None = None):
        self.config, self.dtype, self.device = config, dtype, device
        n_blocks = max(2, DEFAULT_BYTES // self.bytes_for(BLOCK_SIZE)) if n_blocks is None else n_blocks
        self.pool = BlockPool(n_blocks, BLOCK_SIZE)
        self.slots: dict[int, Table] = {}
        shape = config.n_layers, n_blocks, BLOCK_SIZE, config.n_kv_heads
        with naming_memory(f"a pool of {n_blocks:,} blocks, {n_blocks * self.bytes_for(BLOCK_SIZE):,} bytes on {device}"):
            self.keys, self.values = (
                torch.zeros(*shape, D, dtype=dtype, device=device) for D in (config.head_dim, config.value_dim)
            )

    def open(self, ids: Sequence[int], capacity: int) -> tuple[int, int]:
        """Start a request of at most `capacity` tokens, with blocks for those that are known.

        Returns its slot, and how many of ids are in the pool already: whole blocks, never all of ids.
        Raises OutOfMemory where the pool is full, and where it is smaller than the request may grow.
        """
        self.check_capacity(capacity)
        found = self.pool.match(ids)
        self.pool.take(found)  # before anything is allocated, or they might be evicted
        more = self.pool.allocate(self.pool.blocks_for(len(ids)) - len(found))
        if more is None:
            self.pool.release(found)
            raise OutOfMemory(f"no free blocks for {len(ids):,} tokens: {self.pool.n_free} of {self._total} are free")
        slot = next(number for number in range(len(self.slots) + 1) if number not in self.slots)
        n_found = len(found) * BLOCK_SIZE
        self.slots[slot] = Table(found + more, capacity, list(ids[:n_found]))
        return slot, n_found

    def check_capacity(self, n_tokens: int) -> None:
        """Raise OutOfMemory where a request of n tokens does not fit even into an empty pool."""
        needed = self.pool.blocks_for(n_tokens)
        if needed > self._total:
            raise OutOfMemory(
                f"{n_tokens:,} tokens need {needed:,} blocks of {BLOCK_SIZE}, and the pool has {self._total:,}: ask for fewer "
                "tokens (max_tokens), shorten the prompt, or give the cache more memory"
            )

    def reserve(self, slot: int, length: int) -> bool:
        """Give a request the blocks for its first `length` tokens, and a block of its own to write into; False: none free."""
        table = self.slots[slot]
        if length > table.capacity:
            raise ValueError(f"{length} tokens do not fit into slot {slot}, opened for {table.capacity}")
        if not self._own_the_end(table):
            return False
        more = self.pool.allocate(max(0, self.pool.blocks_for(length) - len(table.blocks)))
        if more is None:
            return False
        table.blocks += more
        return True

    def update(self, layer: int, k: Float[Tensor, "n Hkv D"], v: Float[Tensor, "n Hkv D"], batch: Batch) -> PagedKV:
        """Write the step's keys and values where `batch.write` says; return the pool of this layer with everybody's tables."""
        keys, values = self.keys[layer], self.values[layer]
        keys.flatten(0, 1)[batch.write] = k  # block · 16 + offset, as if the pool were one long row of tokens
        values.flatten(0, 1)[batch.write] = v
        return PagedKV(keys, values, batch, window_of(self.config, layer))

    def commit(self, slot: int, ids: Sequence[int]) -> None:
        """The request's next tokens are final: blocks that are full with them can be found from now on."""
        table = self.slots[slot]
        full = len(table.ids) // BLOCK_SIZE
        table.ids += ids
        if len(table.ids) // BLOCK_SIZE > full:
            self.pool.commit(table.blocks, table.ids)

    def truncate(self, slot: int, n: int) -> None:
        """Keep the first n tokens. Blocks behind them go back; what is written next into a shared block goes into a copy."""
        table = self.slots[slot]
        del table.ids[n:]
        keep = self.pool.blocks_for(n)
        self.pool.release(table.blocks[keep:])
        del table.blocks[keep:]

    def close(self, slot: int) -> None:
        """Give a request's blocks back; their texts are kept until the room is needed. Raises KeyError."""
        self.pool.release(self.slots.pop(slot).blocks)

    def block_tables(self, chunks: Sequence[Chunk]) -> list[list[int]]:
        """For each chunk of a step the blocks of its request, in order."""
        return [self.slots[chunk.slot].blocks for chunk in chunks]

    def bytes_for(self, n_tokens: int) -> int:
        """Bytes of the blocks that n tokens of one request fill, over all layers, empty places included."""
        config, n = self.config, -(-n_tokens // BLOCK_SIZE) * BLOCK_SIZE
        return config.n_layers * config.n_kv_heads * (config.head_dim + config.value_dim) * n * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks that requests hold now."""
        return self.pool.n_held * self.bytes_for(BLOCK_SIZE)

    @property
    def pool_bytes(self) -> int:
        """Bytes of the whole pool."""
        return (self._total + 1) * self.bytes_for(BLOCK_SIZE)

    @property
    def _total(self) -> int:
        return self.pool.n_blocks - 1

    def _own_the_end(self, table: Table) -> bool:
        """See to it that the half full block which is written next belongs to nobody else. False: no room for a copy."""
        i, n_there = divmod(len(table.ids), BLOCK_SIZE)
        if n_there == 0:
            return True  # the next token begins a block, and blocks that begin are nobody else's
        old = table.blocks[i]
        new = self.pool.writable(old)
        if new is None:
            return False
        if new != old:
            self.keys[:, new, :n_there], self.values[:, new, :n_there] = self.keys[:, old, :n_there], self.values[:, old, :n_there]
            table.blocks[i] = new
        return True


class PagedKV(Sequence):
    """What the requests of a step see in one layer: the pool itself, and whose blocks are where.

    Kernels read `keys` and `values`, [blocks, 16, Hkv, D] each, through `batch.tables`. `kv[r]` gathers one request's tokens
    into an entry (K, V) or (K, V, visible), as any other cache has it: a copy, for code that knows nothing of blocks.

    window: how many tokens, itself included, a token sees in this layer; None for all.
    """

    def __init__(self, keys: Tensor, values: Tensor, batch: Batch, window: int | None):
        self.keys, self.values, self.batch, self.window = keys, values, batch, window

    def __len__(self) -> int:
        return self.batch.n_requests

    def __getitem__(self, r: int) -> tuple[Tensor, ...]:
        chunk = self.batch.chunks[r]
        blocks = self.batch.tables[r, : -(-chunk.length // BLOCK_SIZE)]
        K, V = (pool[blocks].flatten(0, 1)[: chunk.length] for pool in (self.keys, self.values))
        return within((K, V), len(chunk.ids), self.window)


