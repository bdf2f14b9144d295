"""Q4_1, as GGUF has it: codes of 4 bits, a scale and a minimum in float16 for each 32 weights. 20 bytes for 32 weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from llmcourse.ops.numba.blocks import block_format
from llmcourse.ops.numba.formats import in_tiles
from llmcourse.ops.numba.jit import kernel
from llmcourse.ops.numba.simd import high_nibbles, load, load_bytes, load_one, low_nibbles

BLOCK_BYTES = 20
f32 = np.float32


class Q4_1(NamedTuple):
    """codes: uint8, 256 for a block of 16 rows; scale, low: the bits of float16, 16 for a block."""

    codes: np.ndarray
    scale: np.ndarray
    low: np.ndarray


def pack(raw: np.ndarray) -> Q4_1:
    """Rows of a file, uint8 [o, i / 32 · 20], in tiles. The bytes are moved and none is changed."""
    blocks = raw.reshape(len(raw), -1, BLOCK_BYTES)
    scale, low = (np.ascontiguousarray(blocks[..., i : i + 2]).view(np.uint16)[..., 0] for i in (0, 2))
    return Q4_1(nibbles_in_tiles(blocks[..., 4:]), in_tiles(scale), in_tiles(low))


def nibbles_in_tiles(stored: np.ndarray) -> np.ndarray:
    """[o, blocks, 16] as GGUF stores them (byte j: input j in the low half, j + 16 in the high one) → tiles.

    64 bytes hold four neighbouring inputs of each of 16 rows; the high halves are the inputs 16 further.
    """
    o, n, _ = stored.shape
    tiles = in_tiles(stored).reshape(-1, n, 16, 4, 4)  # tile, block, row, four inputs, which of them
    return np.ascontiguousarray(tiles.transpose(0, 1, 3, 2, 4)).reshape(-1)


@kernel
def piece(W, block, g):
    """Inputs 4g to 4g + 3 of a block: the low halves for g below 4, else the high ones."""
    if g < 4:
        return low_nibbles(load_bytes(W.codes, 256 * block + 64 * g))
    return high_nibbles(load_bytes(W.codes, 256 * block + 64 * (g - 4)))


@kernel
def scale_low(W, block):
    """Scale and minimum of the 16 rows."""
    return load(W.scale, 16 * block), load(W.low, 16 * block)


@kernel
def code_at(codes, block, lane, i):
    """The code of input i of a block in one of its 16 rows."""
    byte = np.int32(codes[256 * block + i % 16 // 4 * 64 + lane * 4 + i % 4])
    return f32(byte >> np.int32(4) if i >= 16 else byte & np.int32(15))


@kernel
def row(W, index, inputs, out, at):
    """One row as float32."""
    blocks, lane = inputs // 32, index % 16
    for b in range(blocks):
        block = index // 16 * blocks + b
        scale, low = load_one(W.scale, 16 * block + lane), load_one(W.low, 16 * block + lane)
        for i in range(32):
            out[at + 32 * b + i] = scale * code_at(W.codes, block, lane, i) + low


FORMAT = block_format(Q4_1, piece, scale_low, row, small=True)
