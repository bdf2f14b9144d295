"""Q4_0, as GGUF has it: codes of 4 bits around 8, one scale in float16 for each 32 weights. 18 bytes for 32 weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from llmcourse.ops.numba.blocks import block_format
from llmcourse.ops.numba.formats import in_tiles
from llmcourse.ops.numba.jit import kernel
from llmcourse.ops.numba.q4_1 import code_at, nibbles_in_tiles, piece
from llmcourse.ops.numba.simd import load, load_one, mul, splat

BLOCK_BYTES, ZERO = 18, 8
f32 = np.float32


class Q4_0(NamedTuple):
    """codes: uint8, 256 for a block of 16 rows; scale: the bits of float16, 16 for a block."""

    codes: np.ndarray
    scale: np.ndarray


def pack(raw: np.ndarray) -> Q4_0:
    """Rows of a file, uint8 [o, i / 32 · 18], in tiles. The bytes are moved and none is changed."""
    blocks = raw.reshape(len(raw), -1, BLOCK_BYTES)
    scale = np.ascontiguousarray(blocks[..., :2]).view(np.uint16)[..., 0]
    return Q4_0(nibbles_in_tiles(blocks[..., 2:]), in_tiles(scale))


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
            out[at + 32 * b + i] = scale * (code_at(W.codes, block, lane, i) - f32(ZERO))


FORMAT = block_format(Q4_0, piece, scale_low, row, small=True)
