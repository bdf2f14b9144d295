"""Weights in float32, bfloat16 or float16, with activations in float32: nothing is rounded but the products' sums.

32 products of a row are added one after the other, then that sum to the row's: long sums of small numbers lose less. A model in 16 bits reads half the
bytes and computes with the same activations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from llmcourse.ops.numba.formats import Format, in_tiles, register
from llmcourse.ops.numba.jit import kernel
from llmcourse.ops.numba.panel import both, loads, outer, zeros
from llmcourse.ops.numba.simd import load_one

_ONE = (0,)


class Full(NamedTuple):
    """values: 16 for an input of 16 rows: float32, uint16 (the bits of float16) or int16 (the bits of bfloat16)."""

    values: np.ndarray


def pack(values: np.ndarray) -> Full:
    """[o, i] in tiles: float32, float16 bits as uint16, or bfloat16 bits as int16."""
    return Full(in_tiles(values))


@kernel
def prepare(W, x, start, stop, planes):
    """Nothing to do: the products take the activations as they are."""


@kernel
def product(W, tile, inputs, x, column, acc, columns, planes):
    """acc + W · x for one tile of rows."""
    weights, first = tile * inputs * 16, column * inputs
    for block in range(0, inputs, 32):
        part = zeros(_ONE, columns)
        for i in range(block, block + 32):
            part = outer(part, loads(W.values, weights + 16 * i, 0, _ONE), x.values, first + i, inputs)
        acc = both(acc, part)
    return acc


@kernel
def row(W, index, inputs, out, at):
    """One row as float32."""
    first = index // 16 * inputs * 16 + index % 16
    for i in range(inputs):
        out[at + i] = load_one(W.values, first + 16 * i)


FORMAT = register(Format(Full, prepare, product, row))
