"""W · x where W has whole-number codes by blocks of 32 inputs: exact sums of codes times codes, then one scale for each block.

A weight is scale · code + minimum. With activations scale_x · code_x, a block of 32 inputs adds
scale · scale_x · Σ code · code_x + minimum · Σ x to its row. The first sum is one of whole numbers: exact, in any order. The
blocks are added one after the other, in float32, the first block first; a format says what its codes, scales and minima are.
"""

from __future__ import annotations

from llmcourse.ops.numba.activations import round_blocks
from llmcourse.ops.numba.formats import Format, register
from llmcourse.ops.numba.jit import kernel
from llmcourse.ops.numba.panel import dots_bytes, dots_small, rescaled, times_128, zero_ints


def block_format(kind: type, piece, scale_low, row, small: bool) -> Format:
    """A format of blocks of 32 inputs.

    piece(W, block, g): 64 bytes of a block: inputs 4g to 4g + 3 of 16 rows, g from 0 to 7, each an unsigned code.
    scale_low(W, block): scale and minimum of its 16 rows, two tiles. `small`: codes are below 128.
    """
    dots = dots_small if small else dots_bytes

    @kernel
    def product(W, tile, inputs, x, column, acc, columns, planes):
        blocks = inputs // 32
        half = len(x.words) // 2
        for b in range(blocks):
            block, at = tile * blocks + b, column * blocks + b
            sums = zero_ints(columns)
            for p in range(len(planes)):
                if p:
                    sums = times_128(sums)
                word = p * half + 8 * at
                for g in range(8):
                    sums = dots(sums, piece(W, block, g), x.words, word + g, 8 * blocks)
            scale, low = scale_low(W, block)
            acc = rescaled(acc, sums, scale, low, x.scale, x.total, at, blocks)
        return acc

    @kernel
    def prepare(W, x, start, stop, planes):
        round_blocks(x, start, stop, planes)

    return register(Format(kind, prepare, product, row))
