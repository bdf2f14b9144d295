"""One step of a Llama-family model as one compiled function: each thread of a team goes through all layers.

A step is a batch (docs/parts.md): n tokens, each with a position and a request. Prefill, decode and many requests at once are
this function with other numbers.

Every row is computed with the same operations in the same order, whatever stands beside it, however the work is cut, and
however many threads there are: threads share rows of weights or rows of tokens, never the terms of a sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from llmcourse.ops.numba.activations import Activations
from llmcourse.ops.numba.attention import FOUR, attend
from llmcourse.ops.numba.formats import prepare, row
from llmcourse.ops.numba.jit import entry, kernel
from llmcourse.ops.numba.linear import ONE, tile_times_rows
from llmcourse.ops.numba.simd import store_one
from llmcourse.ops.numba.stages import rms_norm, rope, silu_times
from llmcourse.ops.numba.team import barrier, share


class Sizes(NamedTuple):
    """Numbers of the model; `group` query heads share a key/value head."""

    L: int
    d: int
    Hq: int
    Hkv: int
    D: int
    f: int
    group: int
    eps: np.float32
    scale: np.float32


class Tokens(NamedTuple):
    """What is computed: a batch as flat arrays of int64 (`tables`: int32).

    ids, positions, write [n]: `write` is block · 16 + place, where its key and value go. table_at [n]: where the table of the
    token's request begins in `tables`. unit_row, unit_rows: rows that attention takes together, four or one. sample [m].
    """

    ids: np.ndarray
    positions: np.ndarray
    write: np.ndarray
    table_at: np.ndarray
    tables: np.ndarray
    unit_row: np.ndarray
    unit_rows: np.ndarray
    sample: np.ndarray


class Stack(NamedTuple):
    """Weights of all layers, each role in one packed weight with the layers' tiles one after the other.

    qkv: rows of q, k, v. gate_up: 16 rows of gates, their 16 rows of ups, and so on. Norms float32 [L · d]; biases and q/k
    norms float32, empty where the model has none. windows int64 [L]: 0 sees everything.
    """

    embed: tuple
    qkv: tuple
    o: tuple
    gate_up: tuple
    down: tuple
    head: tuple
    attn_norm: np.ndarray
    mlp_norm: np.ndarray
    norm: np.ndarray
    qkv_bias: np.ndarray
    o_bias: np.ndarray
    q_norm: np.ndarray
    k_norm: np.ndarray
    windows: np.ndarray


class Room(NamedTuple):
    """Work space for n rows. x: the residual stream; in_d, in_heads, in_f: inputs of the products, by their width.
    scores: a row for each thread."""

    x: np.ndarray
    qkv: np.ndarray
    gate_up: np.ndarray
    in_d: Activations
    in_heads: Activations
    in_f: Activations
    scores: np.ndarray


@entry
def step(sizes, tokens, W, keys, values, cos, sin, room, logits, planes, channels, sync, rank, size):
    """All layers for the tokens, then logits [m · V, rounded up to 16] of the rows to sample."""
    n, d = len(tokens.ids), sizes.d
    first, last = share(n, rank, size)
    for r in range(first, last):
        row(W.embed, tokens.ids[r], d, room.x, r * d)
    for layer in range(sizes.L):
        normed(room.x, W.attn_norm, layer, W.qkv, sizes, room.in_d, first, last, planes)
        barrier(sync, size)
        project(sizes, tokens, W, layer, keys, values, cos, sin, room, planes, rank, size)
        barrier(sync, size)
        mix_heads(sizes, tokens, W, layer, keys, values, room, channels, rank, size)
        barrier(sync, size)
        a, z = share(n * sizes.Hq * sizes.D // 32, rank, size)
        prepare(W.o, room.in_heads, a, z, planes)
        barrier(sync, size)
        a, z = share(d // 16, rank, size)
        for t in range(a, z):
            tile_times_rows(W.o, layer * (d // 16) + t, sizes.Hq * sizes.D, room.in_heads, n, room.x, 16 * t, d,
                            W.o_bias, layer * d + 16 * t, True, planes)  # fmt: skip
        barrier(sync, size)
        normed(room.x, W.mlp_norm, layer, W.gate_up, sizes, room.in_d, first, last, planes)
        barrier(sync, size)
        feed_forward(sizes, n, W, layer, room, planes, sync, rank, size)
        barrier(sync, size)
    read_out(sizes, tokens, W, room, logits, planes, sync, rank, size)


@kernel
def normed(x, norm, layer, W, sizes, out, first, last, planes):
    """RMS norm of rows first to last, made ready for W."""
    d = sizes.d
    for r in range(first, last):
        rms_norm(x, r * d, norm, layer * d, d, sizes.eps, out.values, r * d)
    prepare(W, out, first * (d // 32), last * (d // 32), planes)


@kernel
def project(sizes, tokens, W, layer, keys, values, cos, sin, room, planes, rank, size):
    """q, k, v of this thread's heads: products, norms, rotation; keys and values go into the pool."""
    D, Hq, Hkv = sizes.D, sizes.Hq, sizes.Hkv
    n, heads = len(tokens.ids), Hq + 2 * Hkv
    width, in_block = heads * D, Hkv * 16 * D
    a, z = share(heads, rank, size)
    for t in range(a * (D // 16), z * (D // 16)):
        tile_times_rows(W.qkv, layer * (width // 16) + t, sizes.d, room.in_d, n, room.qkv, 16 * t, width,
                        W.qkv_bias, layer * width + 16 * t, False, planes)  # fmt: skip
    pool = layer * (len(keys) // sizes.L)
    for r in range(n):
        block, place = tokens.write[r] // 16, tokens.write[r] % 16
        for head in range(a, z):
            at = r * width + head * D
            if head < Hq + Hkv:
                if len(W.q_norm) and head < Hq:
                    rms_norm(room.qkv, at, W.q_norm, layer * D, D, sizes.eps, room.qkv, at)
                elif len(W.k_norm):
                    rms_norm(room.qkv, at, W.k_norm, layer * D, D, sizes.eps, room.qkv, at)
                rope(room.qkv, at, D // 2, cos, sin, tokens.positions[r] * (D // 2))
            if Hq <= head < Hq + Hkv:
                to = pool + block * in_block + (head - Hq) * 16 * D + place
                for i in range(D):
                    store_one(keys, to + 16 * i, room.qkv[at + i])
            elif head >= Hq + Hkv:
                to = pool + block * in_block + (head - Hq - Hkv) * 16 * D + place * D
                for i in range(D):
                    store_one(values, to + i, room.qkv[at + i])


@kernel
def mix_heads(sizes, tokens, W, layer, keys, values, room, channels, rank, size):
    """Attention: units of four rows or one, times query heads, dealt out in turn."""
    D, Hq, Hkv = sizes.D, sizes.Hq, sizes.Hkv
    width, in_block = (Hq + 2 * Hkv) * D, Hkv * 16 * D
    pool, window = layer * (len(keys) // sizes.L), W.windows[layer]
    scores, per_row = room.scores[rank], room.scores.shape[1] // 4
    for job in range(rank, len(tokens.unit_row) * Hq, size):
        unit, head = job // Hq, job % Hq
        r = tokens.unit_row[unit]
        high = tokens.positions[r] + 1
        low = high - window if window > 0 else -(1 << 40)
        base = pool + head // sizes.group * 16 * D
        at_q, at_out = r * width + head * D, (r * Hq + head) * D
        if tokens.unit_rows[unit] == 4:
            attend(room.qkv, at_q, width, keys, values, tokens.tables, tokens.table_at[r], base, in_block, D, low, high,
                   scores, per_row, sizes.scale, room.in_heads.values, at_out, Hq * D, FOUR, channels)  # fmt: skip
        else:
            attend(room.qkv, at_q, width, keys, values, tokens.tables, tokens.table_at[r], base, in_block, D, low, high,
                   scores, per_row, sizes.scale, room.in_heads.values, at_out, Hq * D, ONE, channels)  # fmt: skip


@kernel
def feed_forward(sizes, n, W, layer, room, planes, sync, rank, size):
    """silu(gate) · up of this thread's channels, by blocks of 32; then down."""
    d, f = sizes.d, sizes.f
    a, z = share(f // 32, rank, size)
    for t in range(4 * a, 4 * z):
        tile_times_rows(W.gate_up, layer * (f // 8) + t, d, room.in_d, n, room.gate_up, 16 * t, 2 * f,
                        W.o_bias[:0], 0, False, planes)  # fmt: skip
    for r in range(n):
        for t in range(2 * a, 2 * z):
            silu_times(room.gate_up, r * 2 * f + 32 * t, room.in_f.values, r * f + 16 * t)
        prepare(W.down, room.in_f, r * (f // 32) + a, r * (f // 32) + z, planes)
    barrier(sync, size)
    a, z = share(d // 16, rank, size)
    for t in range(a, z):
        tile_times_rows(W.down, layer * (d // 16) + t, f, room.in_f, n, room.x, 16 * t, d,
                        W.o_bias[:0], 0, True, planes)  # fmt: skip


@kernel
def read_out(sizes, tokens, W, room, logits, planes, sync, rank, size):
    """The last norm and the head, of the rows to sample only."""
    d, m = sizes.d, len(tokens.sample)
    if m == 0:
        return
    first, last = share(m, rank, size)
    for i in range(first, last):
        rms_norm(room.x, tokens.sample[i] * d, W.norm, 0, d, sizes.eps, room.in_d.values, i * d)
    prepare(W.head, room.in_d, first * (d // 32), last * (d // 32), planes)
    barrier(sync, size)
    tiles = len(logits) // m // 16
    a, z = share(tiles, rank, size)
    for t in range(a, z):
        tile_times_rows(W.head, t, d, room.in_d, m, logits, 16 * t, 16 * tiles, W.o_bias[:0], 0, False, planes)
    barrier(sync, size)
