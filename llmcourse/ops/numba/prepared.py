"""A prepared step: the compiled function with its weights, its work space and its pool. `step(batch)` gives logits."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from llmcourse.cache.pool import PoolCache
from llmcourse.ops.numba.activations import Activations
from llmcourse.ops.numba.attention import BLOCK, FOUR
from llmcourse.ops.numba.linear import ONE
from llmcourse.ops.numba.step import Room, Sizes, Stack, Tokens, step
from llmcourse.ops.numba.team import team_of
from llmcourse.ops.reference import rope_angles

MOST_ROWS = 512  # computed at a time; a longer step goes through the layers several times
MODES = {"fast": (0,), "fine": (0, 0)}  # planes of the activations
_ANGLES_AT_ONCE = 256


class CompiledStep:
    """All layers and the head as one call.

    Args:
        config: the model's.
        weights: its Stack.
        pool: a PoolCache, whose arrays are read and written in place.
        mode: "fast" or "fine"; of no account for weights in floating point.
        threads: how many, this one included. Results do not depend on it.
        max_context: the most tokens of a request.
    """

    def __init__(self, config, weights: Stack, pool: PoolCache, mode: str, threads: int, max_context: int):
        self.config, self.weights, self.pool, self.mode = config, weights, pool, mode
        self.team = team_of(threads)
        c = config
        self.sizes = Sizes(c.n_layers, c.width, c.n_heads, c.n_kv_heads, c.head_dim, c.ffn_width, c.n_heads // c.n_kv_heads,
                           np.float32(c.rms_eps), np.float32(c.head_dim**-0.5))  # fmt: skip
        self.angles = Angles(config)
        self.keys, self.values = (_bits(array).reshape(-1) for array in (pool.keys, pool.values))
        n, heads = MOST_ROWS, c.n_heads * c.head_dim
        per_row = (max_context + 2 * BLOCK) // BLOCK * BLOCK
        self.room = Room(
            np.zeros(n * c.width, np.float32), np.zeros(n * (heads + 2 * c.n_kv_heads * c.head_dim), np.float32),
            np.zeros(n * 2 * c.ffn_width, np.float32), *(Activations.room(n, width) for width in (c.width, heads, c.ffn_width)),
            np.zeros((threads, 4 * per_row), np.float32),
        )  # fmt: skip
        self.channels = FOUR if c.head_dim % (4 * BLOCK) == 0 else ONE
        self.V = -(-c.vocab_size // 16) * 16

    def __call__(self, batch) -> Tensor:
        """Logits [m, V], float32, of `batch.sample_rows`. Rows that are not finite are the caller's to report."""
        return self.compute(
            batch.ids.numpy(), batch.positions.numpy(), batch.starts.numpy(), batch.tables.numpy(), batch.write.numpy(),
            batch.sample_rows.numpy(),
        )  # fmt: skip

    def compute(self, ids, positions, starts, tables, write, sample) -> Tensor:
        """The same, of arrays: ids, positions, write int64 [n], starts [R + 1], tables int32 [R, B], sample int64 [m]."""
        logits = np.empty(len(sample) * self.V, np.float32)
        cos, sin = self.angles.up_to(int(positions.max()))
        request = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        table_at, flat = request * tables.shape[1], tables.reshape(-1)
        for a in range(0, len(ids), MOST_ROWS):
            z = min(a + MOST_ROWS, len(ids))
            first, last = np.searchsorted(sample, (a, z))
            row, rows = units(np.clip(starts, a, z) - a)
            tokens = Tokens(ids[a:z], positions[a:z], write[a:z], table_at[a:z], flat, row, rows, sample[first:last] - a)
            self.team.run(step, self.sizes, tokens, self.weights, self.keys, self.values, cos, sin, self.room,
                          logits[first * self.V : last * self.V], MODES[self.mode], self.channels)  # fmt: skip
        return torch.from_numpy(logits).view(-1, self.V)[:, : self.config.vocab_size]


def units(starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows that attention takes together: first row and how many, four of one request or one. starts: R + 1 offsets."""
    rows = np.diff(starts)
    if rows.max() < len(FOUR):
        n = int(starts[-1])
        return np.arange(n), np.ones(n, np.int64)
    first, count = [], []
    for start, n in zip(starts[:-1].tolist(), rows.tolist()):
        fours = n // 4
        first += [start + 4 * i for i in range(fours)] + list(range(start + 4 * fours, start + n))
        count += [4] * fours + [1] * (n % 4)
    return np.array(first, np.int64), np.array(count, np.int64)


def _bits(array: np.ndarray) -> np.ndarray:
    """float16 as the kernels know it: as its bits."""
    return array.view(np.uint16) if array.dtype == np.float16 else array


class Angles:
    """Cosine and sine of every pair of channels at every position, computed as they are needed.

    Always in whole chunks of positions, so that a position's numbers do not depend on who asked first.
    """

    def __init__(self, config):
        self.config, self.n = config, 0
        self.cos = self.sin = np.zeros(0, np.float32)

    def up_to(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """Flat arrays of [positions, D/2] that contain `position`."""
        while self.n <= position:
            c = self.config
            chunk = torch.arange(self.n, self.n + _ANGLES_AT_ONCE)
            cos, sin = rope_angles(chunk, c.head_dim, c.rope_theta, c.rope_scaling)
            self.cos = np.concatenate([self.cos, cos.numpy().reshape(-1)])
            self.sin = np.concatenate([self.sin, sin.numpy().reshape(-1)])
            self.n += _ANGLES_AT_ONCE
        return self.cos, self.sin
