"""Activations, rounded to whole numbers by blocks of 32: what integer products multiply with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from llmcourse.ops.numba.jit import kernel
from llmcourse.ops.numba.lanes import (
    largest_int, largest_of_ints, magnitude_bits, rounded, shifted_left, shifted_right, total_ints,
)  # fmt: skip
from llmcourse.ops.numba.simd import add_ints, load, mul, splat, splat_int, store_low_bytes, sub_ints

BLOCK = 32
LEVELS = {1: 127, 2: 16_256}  # the largest whole number by the number of planes: 127, and 128 · 127
_TINY = np.float32(1e-30)  # below it 127 / largest would overflow, and the block counts as zeros
f32, i32 = np.float32, np.int32


class Activations(NamedTuple):
    """The inputs of a product for n rows of `width` numbers, and room for their whole-number form.

    values: float32 [n · width]. codes: int8, two planes of [n · width]; words: the same memory, four codes in an int32.
    scale, total: float32 [n · width / 32]: of each block, what a code counts, and the sum of the rounded values.
    """

    values: np.ndarray
    codes: np.ndarray
    words: np.ndarray
    scale: np.ndarray
    total: np.ndarray

    @classmethod
    def room(cls, n: int, width: int) -> Activations:
        """Room for n rows; memory is taken when it is first written."""
        codes = np.zeros(2 * n * width, np.int8)
        blocks = n * width // BLOCK
        return cls(np.zeros(n * width, f32), codes, codes.view(i32), np.zeros(blocks, f32), np.zeros(blocks, f32))


@kernel
def round_blocks(x, start, stop, planes):
    """Blocks start to stop as whole numbers times a scale.

    One plane: whole numbers to ±127, as llama.cpp rounds. Two planes: to ±16,256, as 128 · high + low, both of them int8;
    128 times finer, twice the products. The sum is that of the rounded values: W = scale · code + minimum is small where its
    two parts are large, and their errors cancel only when both meet the same activations.

    A block with an infinity or a NaN gets a scale that is not finite, and so does every output of its row.
    """
    half = len(x.codes) // 2
    levels = f32(127) if len(planes) == 1 else f32(16256)
    for b in range(start, stop):
        at = 32 * b
        first, second = load(x.values, at), load(x.values, at + 16)
        largest = largest_of_ints(largest_int(magnitude_bits(first), magnitude_bits(second)))
        up = splat(levels / largest if largest > _TINY else f32(0))
        a, c = rounded(mul(first, up)), rounded(mul(second, up))
        if len(planes) == 1:
            store_low_bytes(x.codes, at, a)
            store_low_bytes(x.codes, at + 16, c)
        else:
            _two_planes(x.codes, at, half, a)
            _two_planes(x.codes, at + 16, half, c)
        scale = largest / levels
        x.scale[b] = scale
        x.total[b] = scale * f32(total_ints(add_ints(a, c)))


@kernel
def _two_planes(codes, at, half, whole):
    """16 whole numbers as 128 · high + low, low from −64 to 63."""
    high = shifted_right(add_ints(whole, splat_int(i32(64))), i32(7))
    store_low_bytes(codes, at, high)
    store_low_bytes(codes, half + at, sub_ints(whole, shifted_left(high, i32(7))))
