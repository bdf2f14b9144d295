"""The product of packed 4-bit weights in plain loops: to be read before the tiles, and to compare them with.

numba makes machine code of ordinary loops over numbers, and LLVM makes vector instructions of the innermost one where it can.
What that takes: it must run over neighbouring output rows, not over the terms of a sum (those may not be reordered), and no
64-bit number may appear in it, since the widest type decides how many lanes there are.
"""

from __future__ import annotations

import numpy as np

from llmcourse.ops.numba.jit import entry

ROWS = 64  # rows side by side in memory
f32, i32 = np.float32, np.int32


def pack(scale: np.ndarray, low: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights scale · code + low in blocks of 32 inputs, for the loops below. The number of rows is a multiple of 64.

    scale, low [o, blocks], codes [o, blocks, 32] from 0 to 15. Returns codes uint8 [o / 64, blocks, 16, 64], of which a byte
    holds inputs j and j + 16 of its block, and scale and low float32 [o / 64, blocks, 64].
    """
    o, n = scale.shape
    halves = (codes[..., :16] | codes[..., 16:] << 4).astype(np.uint8)
    tiled = np.ascontiguousarray(halves.reshape(o // ROWS, ROWS, n, 16).transpose(0, 2, 3, 1))
    return tiled, *(np.ascontiguousarray(a.reshape(o // ROWS, ROWS, n).transpose(0, 2, 1).astype(f32)) for a in (scale, low))


@entry
def one_by_one(scale, low, codes, x_scale, x_codes, y):
    """As one would write it down: row by row, W expanded number by number. scale, low, codes as `pack` takes them.

    x_scale float32 [blocks], x_codes int8 [blocks, 32]: activations as whole numbers. y float32 [o].
    """
    for r in range(len(y)):
        y[r] = f32(0)
        for b in range(scale.shape[1]):
            for i in range(32):
                y[r] += (scale[r, b] * f32(codes[r, b, i]) + low[r, b]) * (x_scale[b] * f32(x_codes[b, i]))


@entry
def by_rows(codes, scale, low, x_scale, x_total, x_codes, y):
    """64 rows side by side, whole numbers inside a block: what `pack` returned, and x_total [blocks], the blocks' sums."""
    sums = np.empty(ROWS, np.int32)
    for t in range(len(codes)):
        y[t * ROWS : (t + 1) * ROWS] = f32(0)
        for b in range(codes.shape[1]):
            sums[:] = i32(0)
            for j in range(16):
                first, second = i32(x_codes[b, j]), i32(x_codes[b, j + 16])
                for r in range(ROWS):
                    byte = i32(codes[t, b, j, r])
                    sums[r] += i32(i32(byte & i32(15)) * first) + i32(i32(byte >> i32(4)) * second)
            for r in range(ROWS):
                y[t * ROWS + r] += scale[t, b, r] * x_scale[b] * f32(sums[r]) + low[t, b, r] * x_total[b]
