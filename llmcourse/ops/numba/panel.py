"""Panels: several tiles at once, R tiles of rows by C columns, as a tuple of R · C tiles.

A tile of weights that stands in a register can meet several columns of activations before the next is loaded. How many is a
matter of speed alone: each tile of a panel sees the operations that it would see in a panel of one, in the same order. So the
same kernel text is compiled for one column and for several, and their results are equal bit for bit.

`columns` and `rows` are tuples whose length counts: it is known when a kernel is compiled.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from llmcourse.ops.numba.dot import dot4, features_of
from llmcourse.ops.numba.simd import (
    I8, I32, address, bytes64, call, constant, floats, ints, narrowed, spread_value, widened,
)  # fmt: skip

_INT = types.int64


def _tuple(builder, context, kind, values):
    return context.make_tuple(builder, kind, values)


def _at(builder, start, step, i: int):
    """start + i · step."""
    return start if i == 0 else builder.add(start, builder.mul(step, ir.IntType(64)(i)))


def _fma(builder, a, b, c):
    return call(builder, "llvm.fma.v16f32", floats.llvm, a, b, c)


@intrinsic
def zeros(typingctx, rows, columns):
    """A panel of zeros."""
    kind = types.UniTuple(floats, len(rows) * len(columns))
    return kind(rows, columns), lambda c, b, sig, args: _tuple(b, c, kind, [constant(floats.llvm, 0.0)] * kind.count)


@intrinsic
def zero_ints(typingctx, columns):
    """A tile of zero ints for each column."""
    kind = types.UniTuple(ints, len(columns))
    return kind(columns), lambda c, b, sig, args: _tuple(b, c, kind, [constant(ints.llvm, 0)] * kind.count)


@intrinsic
def loads(typingctx, array, start, step, rows):
    """Tiles from array[start], array[start + step], …: one for each of `rows`."""
    kind = types.UniTuple(floats, len(rows))

    def build(context, builder, sig, args):
        array, start, step, _ = args
        tiles = [widened(context, builder, sig.args[0], array, _at(builder, start, step, i), 16) for i in range(kind.count)]
        return _tuple(builder, context, kind, tiles)

    return kind(array, _INT, _INT, rows), build


@intrinsic
def outer(typingctx, panel, tiles, x, start, step):
    """panel[r, c] + tiles[r] · x[start + c · step], rounded once: one term of a product of matrices, for R · C tiles."""
    C = panel.count // tiles.count

    def build(context, builder, sig, args):
        panel, tiles, x, start, step = args
        acc, tiles = cgutils.unpack_tuple(builder, panel), cgutils.unpack_tuple(builder, tiles)
        for c in range(C):
            value = widened(context, builder, sig.args[2], x, _at(builder, start, step, c), 1)
            value = spread_value(builder, value, floats.llvm)
            for r, tile in enumerate(tiles):
                acc[r * C + c] = _fma(builder, tile, value, acc[r * C + c])
        return _tuple(builder, context, sig.return_type, acc)

    return panel(panel, tiles, x, _INT, _INT), build


@intrinsic
def outer_where(typingctx, panel, tiles, x, start, step, t, low, high):
    """As `outer` for the columns c with low + c ≤ t < high + c; the others stay as they are, whatever the tiles hold."""
    C = panel.count // tiles.count

    def build(context, builder, sig, args):
        panel, tiles, x, start, step, t, low, high = args
        acc, tiles = cgutils.unpack_tuple(builder, panel), cgutils.unpack_tuple(builder, tiles)
        for c in range(C):
            shifted = builder.sub(t, ir.IntType(64)(c))
            seen = builder.and_(builder.icmp_signed(">=", shifted, low), builder.icmp_signed("<", shifted, high))
            value = widened(context, builder, sig.args[2], x, _at(builder, start, step, c), 1)
            value = spread_value(builder, value, floats.llvm)
            for r, tile in enumerate(tiles):
                old = acc[r * C + c]
                acc[r * C + c] = builder.select(seen, _fma(builder, tile, value, old), old)
        return _tuple(builder, context, sig.return_type, acc)

    return panel(panel, tiles, x, _INT, _INT, _INT, _INT, _INT), build


@intrinsic
def stores(typingctx, array, start, row_step, column_step, panel, columns):
    """Write panel[r, c] to array[start + r · row_step + c · column_step]."""
    C = len(columns)

    def build(context, builder, sig, args):
        array, start, row_step, column_step, panel, _ = args
        for i, tile in enumerate(cgutils.unpack_tuple(builder, panel)):
            at = _at(builder, _at(builder, start, row_step, i // C), column_step, i % C)
            narrowed(context, builder, sig.args[0], array, at, tile)
        return context.get_dummy_value()

    return types.void(array, _INT, _INT, _INT, panel, columns), build


@intrinsic
def plus(typingctx, panel, tiles):
    """panel[r, c] + tiles[r]."""
    C = panel.count // tiles.count

    def build(context, builder, sig, args):
        acc, tiles = cgutils.unpack_tuple(builder, args[0]), cgutils.unpack_tuple(builder, args[1])
        acc = [builder.fadd(old, tiles[i // C]) for i, old in enumerate(acc)]
        return _tuple(builder, context, sig.return_type, acc)

    return panel(panel, tiles), build


@intrinsic
def both(typingctx, panel, other):
    """The sum of two panels."""

    def build(context, builder, sig, args):
        pairs = zip(*(cgutils.unpack_tuple(builder, panel) for panel in args))
        return _tuple(builder, context, sig.return_type, [builder.fadd(a, b) for a, b in pairs])

    return panel(panel, other), build


def _dots(small: bool):
    def typed(typingctx, sums, codes, words, start, step):
        """sums[c] + four products of each of 16 rows: the codes times the four int8 in words[start + c · step]."""

        def build(context, builder, sig, args):
            sums, codes, words, start, step = args
            features = features_of(str(context.codegen()._tm_features))
            acc = cgutils.unpack_tuple(builder, sums)
            for c in range(len(acc)):
                at = address(context, builder, sig.args[2], words, _at(builder, start, step, c), I32)
                x = builder.bitcast(spread_value(builder, builder.load(at), ints.llvm), ir.VectorType(I8, 64))
                acc[c] = dot4(builder, features, acc[c], codes, x, small)
            return _tuple(builder, context, sig.return_type, acc)

        return sums(sums, bytes64, words, _INT, _INT), build

    return intrinsic(typed)


dots_small, dots_bytes = _dots(True), _dots(False)  # codes below 128, and codes up to 255


@intrinsic
def times_128(typingctx, sums):
    """128 times each int."""

    def build(context, builder, sig, args):
        tiles = [builder.shl(tile, constant(ints.llvm, 7)) for tile in cgutils.unpack_tuple(builder, args[0])]
        return _tuple(builder, context, sig.return_type, tiles)

    return sums(sums), build


@intrinsic
def rescaled(typingctx, panel, sums, scale, low, x_scale, x_total, start, step):
    """panel[c] + scale · x_scale[…] · sums[c] + low · x_total[…], the two of column c at start + c · step."""

    def build(context, builder, sig, args):
        panel, sums, scale, low, x_scale, x_total, start, step = args
        acc, sums = cgutils.unpack_tuple(builder, panel), cgutils.unpack_tuple(builder, sums)
        for c in range(len(acc)):
            at = _at(builder, start, step, c)
            one, whole = (
                spread_value(builder, widened(context, builder, sig.args[i], args[i], at, 1), floats.llvm) for i in (4, 5)
            )
            value = builder.sitofp(sums[c], floats.llvm)
            acc[c] = _fma(builder, builder.fmul(scale, one), value, acc[c])
            acc[c] = _fma(builder, low, whole, acc[c])
        return _tuple(builder, context, sig.return_type, acc)

    return panel(panel, sums, floats, floats, x_scale, x_total, _INT, _INT), build
