"""Formats of packed weights: what a kernel asks of each, and how it finds the right one.

A format is a named tuple of flat arrays, in a file of its own. numba knows the class of a named tuple when it compiles, so
`product(W, …)` below is bound to the functions of W's own format, and nothing is asked while the kernel runs.

In every format 16 output rows are a tile. Tile t holds rows 16t to 16t + 15, input by input, so that one load brings
neighbouring inputs of 16 rows, and no sum goes across lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba.extending import overload

ROWS = 16


@dataclass(frozen=True)
class Format:
    """The functions of one format, compiled.

    prepare(W, x, start, stop, planes): make blocks start to stop of the activations ready.
    product(W, tile, inputs, x, column, acc, columns, planes): a panel `acc` of one row tile, W · x added, for
        activations of rows column, column + 1, ….
    row(W, row, inputs, out, at): write one row as float32, for the embedding.
    pack(raw rows or values): Packed: the arrays of the named tuple from what the file holds.
    """

    kind: type
    prepare: Callable
    product: Callable
    row: Callable


_FORMATS: dict[type, Format] = {}


def register(known: Format) -> Format:
    """Make a format known to the kernels."""
    _FORMATS[known.kind] = known
    return known


def prepare(W, x, start, stop, planes):
    """Make blocks start to stop of the activations ready for products with W."""
    raise NotImplementedError("only inside kernels")


def product(W, tile, inputs, x, column, acc, columns, planes):
    """acc + W · x for one tile of rows."""
    raise NotImplementedError("only inside kernels")


def row(W, index, inputs, out, at):
    """Row `index` of W as float32, written to out[at : at + inputs]."""
    raise NotImplementedError("only inside kernels")


@overload(prepare, inline="never")
def _prepare(W, x, start, stop, planes):
    chosen = _FORMATS[W.instance_class].prepare
    return lambda W, x, start, stop, planes: chosen(W, x, start, stop, planes)


@overload(product, inline="never")
def _product(W, tile, inputs, x, column, acc, columns, planes):
    chosen = _FORMATS[W.instance_class].product
    return lambda W, tile, inputs, x, column, acc, columns, planes: chosen(
        W, tile, inputs, x, column, acc, columns, planes
    )


@overload(row, inline="never")
def _row(W, index, inputs, out, at):
    chosen = _FORMATS[W.instance_class].row
    return lambda W, index, inputs, out, at: chosen(W, index, inputs, out, at)


def padded(values: np.ndarray) -> np.ndarray:
    """The rows with zeros appended until they fill tiles of 16."""
    missing = -len(values) % ROWS
    return values if not missing else np.concatenate([values, np.zeros((missing, *values.shape[1:]), values.dtype)])


def in_tiles(values: np.ndarray) -> np.ndarray:
    """[o, n, …] → flat, ordered tile, n, row, …: what belongs to one block of 16 rows lies together."""
    tiles = padded(values)
    return np.ascontiguousarray(np.moveaxis(tiles.reshape(-1, ROWS, *values.shape[1:]), 1, 2)).reshape(-1)
