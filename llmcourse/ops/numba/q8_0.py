"""Q8_0, as GGUF has it: codes of 8 bits, one scale in float16 for each 32 weights. 34 bytes for 32 weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from llmcourse.ops.numba.blocks import block_format
from llmcourse.ops.numba.formats import in_tiles
from llmcourse.ops.numba.jit import kernel
from llmcourse.ops.numba.simd import load, load_bytes, load_one, mul, splat

BLOCK_BYTES, ZERO = 34, 128
f32 = np.float32


class Q8_0(NamedTuple):
    """codes: uint8, 512 for a block of 16 rows, 128 more than in the file, since one side of the products is unsigned.
    scale: the bits of float16, 16 for a block."""

    codes: np.ndarray
    scale: np.ndarray


def pack(raw: np.ndarray) -> Q8_0:
    """Rows of a file, uint8 [o, i / 32 · 34], in tiles."""
    blocks = raw.reshape(len(raw), -1, BLOCK_BYTES)
    scale = np.ascontiguousarray(blocks[..., :2]).view(np.uint16)[..., 0]
    o, n = scale.shape
    codes = in_tiles(blocks[..., 2:] ^ ZERO).reshape(-1, n, 16, 8, 4)  # tile, block, row, eight times four inputs
    return Q8_0(np.ascontiguousarray(codes.transpose(0, 1, 3, 2, 4)).reshape(-1), in_tiles(scale))


@kernel
def piece(W, block, g):
    """Inputs 4g to 4g + 3 of a block."""
    return load_bytes(W.codes, 512 * block + 64 * g)


@kernel
def scale_low(W, block):
    """Scale of the 16 rows, and what a code of 0 stands for."""
    scale = load(W.scale, 16 * block)
    return scale, mul(scale, splat(f32(-ZERO)))


@kernel
def row(W, index, inputs, out, at):
    """One row as float32."""
    blocks, lane = inputs // 32, index % 16
    for b in range(blocks):
        block = index // 16 * blocks + b
        scale = load_one(W.scale, 16 * block + lane)
        for i in range(32):
            code = np.int32(W.codes[512 * block + i // 4 * 64 + lane * 4 + i % 4]) - np.int32(ZERO)
            out[at + 32 * b + i] = scale * f32(code)


FORMAT = block_format(Q8_0, piece, scale_low, row, small=False)
