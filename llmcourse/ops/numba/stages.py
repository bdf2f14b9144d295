"""The small stages: RMS norm, rotation, SiLU. Each row is computed by itself, in one fixed order of operations."""

from __future__ import annotations

import numpy as np

from llmcourse.ops.numba.jit import kernel
from llmcourse.ops.numba.lanes import exp, total
from llmcourse.ops.numba.simd import add, div, load, mul, splat, store

f32 = np.float32


@kernel
def rms_norm(x, at, weight, at_weight, d, eps, out, at_out):
    """out = x / rms(x) · weight for one row of d numbers, d a multiple of 16. `out` may be x itself."""
    squares = splat(f32(0))
    for i in range(0, d, 16):
        tile = load(x, at + i)
        squares = add(squares, mul(tile, tile))
    scale = splat(f32(1) / np.sqrt(total(squares) / f32(d) + f32(eps)))
    for i in range(0, d, 16):
        store(out, at_out + i, mul(mul(load(x, at + i), scale), load(weight, at_weight + i)))


@kernel
def rope(x, at, half, cos, sin, at_angle):
    """Turn channel i together with channel i + half, for one head, in place."""
    for i in range(half):
        a, b, c, s = x[at + i], x[at + half + i], cos[at_angle + i], sin[at_angle + i]
        x[at + i] = a * c - b * s
        x[at + half + i] = b * c + a * s


@kernel
def silu_times(gate_up, at, out, at_out):
    """16 gates, then their 16 ups → silu(gate) · up."""
    gate, one = load(gate_up, at), splat(f32(1))
    sigmoid = div(one, add(one, exp(mul(gate, splat(f32(-1))))))
    store(out, at_out, mul(mul(gate, sigmoid), load(gate_up, at + 16)))
