"""Attention over a pool of blocks of 16 tokens.

In a block keys lie [D, 16] and values [16, D]: a tile is 16 tokens for the scores and 16 channels for the mix, so that no sum
goes across lanes. Rows that follow each other in a request share a panel: a tile of keys is read once for all of them.

A score is summed over channels, first to last; a mix over tokens, first to last, in one pass each. What a row may not see
is never multiplied, since a place that nobody wrote may hold a NaN.
"""

from __future__ import annotations

import numpy as np

from llmcourse.ops.numba.jit import kernel
from llmcourse.ops.numba.lanes import between, exp, largest, total
from llmcourse.ops.numba.linear import ONE
from llmcourse.ops.numba.panel import loads, outer, outer_where, stores, zeros
from llmcourse.ops.numba.simd import add, load, mul, splat, store

BLOCK = 16
FOUR = (0, 0, 0, 0)
f32 = np.float32


@kernel
def attend(q, at_q, q_step, keys, values, table, at_table, base, per_block, D, low, high, scores, room, scale, out, at_out,
           out_step, columns, channels):  # fmt: skip
    """One query head of as many rows as there are columns, which follow each other in one request.

    Row c sees positions low + c (at least 0) to high + c − 1. q, out: row c at at_q + c · q_step, at_out + c · out_step.
    keys, values: the pool; block b of the request begins at table[at_table + b] · per_block + base.
    scores: work space, `room` numbers for each row. channels: how many tiles of channels are mixed at a time.
    """
    n, C = high + len(columns) - 1, len(columns)
    first = max(low, 0) // BLOCK
    last = (n + BLOCK - 1) // BLOCK
    b = first
    while b + len(FOUR) <= last:
        _score(q, at_q, q_step, keys, table, at_table, base, per_block, D, b, scores, room, FOUR, columns)
        b += len(FOUR)
    while b < last:
        _score(q, at_q, q_step, keys, table, at_table, base, per_block, D, b, scores, room, ONE, columns)
        b += 1
    for c in range(C):
        _softmax(scores, c * room, first, last, low + c, high + c, scale)
    for i in range(0, D, BLOCK * len(channels)):
        mixed = _mix(values, table, at_table, base + i, per_block, D, low, high, scores, room, columns, channels)
        stores(out, at_out + i, BLOCK, out_step, mixed, columns)


@kernel
def _score(q, at_q, q_step, keys, table, at_table, base, per_block, D, b, scores, room, blocks, columns):
    """q · k of a few blocks of tokens with all columns: scores[c · room + 16 b …]."""
    at = np.int64(table[at_table + b]) * per_block + base
    if len(blocks) == 1:
        acc = zeros(ONE, columns)
        for i in range(D):
            acc = outer(acc, loads(keys, at + BLOCK * i, 0, ONE), q, at_q + i, q_step)
        stores(scores, BLOCK * b, BLOCK, room, acc, columns)
    else:
        at1 = np.int64(table[at_table + b + 1]) * per_block + base
        at2 = np.int64(table[at_table + b + 2]) * per_block + base
        at3 = np.int64(table[at_table + b + 3]) * per_block + base
        acc = zeros(FOUR, columns)
        for i in range(0, BLOCK * D, BLOCK):
            tiles = (load(keys, at + i), load(keys, at1 + i), load(keys, at2 + i), load(keys, at3 + i))
            acc = outer(acc, tiles, q, at_q + i // BLOCK, q_step)
        stores(scores, BLOCK * b, BLOCK, room, acc, columns)


@kernel
def _softmax(scores, at, first, last, low, high, scale):
    """Scores of positions low to high − 1 → their shares of 1; the others' are 0 and not used."""
    top, factor = -f32(np.inf), splat(scale)
    for b in range(first, last):
        tile = between(mul(load(scores, at + BLOCK * b), factor), BLOCK * b, low, high, -f32(np.inf))
        store(scores, at + BLOCK * b, tile)
        highest = largest(tile)
        top = highest if highest > top else top
    sums, shift = splat(f32(0)), splat(-top)
    for b in range(first, last):
        tile = between(exp(add(load(scores, at + BLOCK * b), shift)), BLOCK * b, low, high, f32(0))
        store(scores, at + BLOCK * b, tile)
        sums = add(sums, tile)
    share = splat(f32(1) / total(sums))
    for b in range(first, last):
        store(scores, at + BLOCK * b, mul(load(scores, at + BLOCK * b), share))


@kernel
def _mix(values, table, at_table, base, per_block, D, low, high, scores, room, columns, channels):
    """The values of all positions, each with its share: a panel of some tiles of channels, and a column for each row."""
    everyone_from, everyone_to = max(low + len(columns) - 1, 0), high  # what all columns see
    start, stop = max(low, 0), high + len(columns) - 1
    acc = zeros(channels, columns)
    for b in range(start // BLOCK, (stop + BLOCK - 1) // BLOCK):
        at = np.int64(table[at_table + b]) * per_block + base
        a, z = max(start, BLOCK * b), min(stop, BLOCK * b + BLOCK)
        if a >= everyone_from and z <= everyone_to:
            for t in range(a, z):
                acc = outer(acc, loads(values, at + (t - BLOCK * b) * D, BLOCK, channels), scores, t, room)
        else:
            for t in range(a, z):
                tiles = loads(values, at + (t - BLOCK * b) * D, BLOCK, channels)
                acc = outer_where(acc, tiles, scores, t, room, t, low, high)
    return acc
