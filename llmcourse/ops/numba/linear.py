"""A linear layer for all rows of a step: this thread's tiles, and each of them times all columns."""

from __future__ import annotations

import llvmlite.binding as llvm
import numba
import numpy as np

from llmcourse.ops.numba.formats import prepare, product
from llmcourse.ops.numba.jit import entry, kernel
from llmcourse.ops.numba.panel import loads, plus, stores, zeros

ONE = (0,)
NO_BIAS = np.zeros(0, np.float32)


def _width() -> int:
    """Columns that a tile of weights meets at a time: as many as the registers hold sums for."""
    features = numba.config.CPU_FEATURES or llvm.get_host_cpu_features().flatten()
    return 8 if "+avx512f" in features.split(",") else 4


SEVERAL = (0,) * _width()


@kernel
def tile_times_rows(W, tile, inputs, x, n, y, at, width, bias, at_bias, keep, planes):
    """y[at + r · width …] = W · x[r] (+ bias) for one tile of W and all n rows r; where `keep`, added to what stands there.

    bias: 16 numbers at `at_bias`; an empty array where there is none.
    """
    c = 0
    while c + len(SEVERAL) <= n:
        _panel(W, tile, inputs, x, c, y, at + c * width, width, bias, at_bias, keep, planes, SEVERAL)
        c += len(SEVERAL)
    while c < n:
        _panel(W, tile, inputs, x, c, y, at + c * width, width, bias, at_bias, keep, planes, ONE)
        c += 1


@kernel
def _panel(W, tile, inputs, x, c, y, at, width, bias, at_bias, keep, planes, columns):
    acc = zeros(ONE, columns)
    if keep:
        acc = loads(y, at, width, columns)
    if len(bias):
        acc = plus(acc, loads(bias, at_bias, 0, ONE))
    stores(y, at, 0, width, product(W, tile, inputs, x, c, acc, columns, planes), columns)


@entry
def linear(W, x, n, inputs, y, planes):
    """One linear layer alone: y [n, o] = x · Wᵀ for n rows of activations, on this thread."""
    prepare(W, x, 0, n * inputs // 32, planes)
    tiles = len(y) // n // 16
    for tile in range(tiles):
        tile_times_rows(W, tile, inputs, x, n, y, 16 * tile, 16 * tiles, NO_BIAS, 0, False, planes)
