"""Functions of whole tiles: sums and maxima across lanes, rounding, e to the power of each lane, masks. NaN comes out as NaN."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from llmcourse.ops.numba.simd import F32, I32, call, constant, floats, ints, pick, spread_value

_ABSOLUTE = 0x7FFFFFFF  # all bits of a float32 but its sign
_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.693359375, -2.12194440e-4
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_LEAST, _MOST = -87.0, 88.0  # e to these is still a normal float32
_ROUND = 12582912.0  # 1.5 · 2²³: adding it leaves a float's whole part in its lowest bits


def halved(builder, vector, combine):
    """Combine the upper half of the lanes with the lower one until one is left: always in the same order."""
    while vector.type.count > 2:
        half = vector.type.count // 2
        vector = combine(pick(builder, vector, range(half)), pick(builder, vector, range(half, 2 * half)))
    return combine(*(builder.extract_element(vector, I32(i)) for i in range(2)))


@intrinsic
def total(typingctx, tile):
    """The sum of the 16 lanes."""
    return types.float32(floats), lambda c, b, sig, args: halved(b, args[0], b.fadd)


@intrinsic
def total_ints(typingctx, tile):
    """The sum of 16 ints."""
    return types.int32(ints), lambda c, b, sig, args: halved(b, args[0], b.add)


@intrinsic
def largest(typingctx, tile):
    """The largest of the 16 lanes; a NaN is passed over."""

    def build(context, builder, sig, args):
        return halved(builder, args[0], lambda a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))

    return types.float32(floats), build


@intrinsic
def magnitude_bits(typingctx, tile):
    """The bits of |a| as ints: they are ordered as the numbers are, and infinity and NaN come last."""

    def build(context, builder, sig, args):
        return builder.and_(builder.bitcast(args[0], ints.llvm), constant(ints.llvm, _ABSOLUTE))

    return ints(floats), build


@intrinsic
def largest_int(typingctx, a, b):
    """The largest of two tiles of ints, lane by lane."""
    return ints(ints, ints), lambda c, b, sig, args: b.select(b.icmp_signed(">", *args), *args)


@intrinsic
def largest_of_ints(typingctx, tile):
    """The largest of 16 ints, as the float32 that has its bits."""

    def build(context, builder, sig, args):
        top = halved(builder, args[0], lambda a, b: builder.select(builder.icmp_signed(">", a, b), a, b))
        return builder.bitcast(top, F32)

    return types.float32(ints), build


@intrinsic
def rounded(typingctx, tile):
    """The nearest whole numbers (halves to even) as ints; NaN becomes 0."""

    def build(context, builder, sig, args):
        whole = call(builder, "llvm.rint.v16f32", floats.llvm, args[0])
        return call(builder, "llvm.fptosi.sat.v16i32.v16f32", ints.llvm, whole)

    return ints(floats), build


@intrinsic
def shifted_right(typingctx, tile, bits):
    """ints >> bits, with their sign."""
    return ints(ints, types.int32), lambda c, b, sig, args: b.ashr(args[0], spread_value(b, args[1], ints.llvm))


@intrinsic
def shifted_left(typingctx, tile, bits):
    """ints << bits."""
    return ints(ints, types.int32), lambda c, b, sig, args: b.shl(args[0], spread_value(b, args[1], ints.llvm))


@intrinsic
def exp(typingctx, tile):
    """e to each lane, within 3 units in the last place; of less than −87, e⁻⁸⁷.

    2^whole goes into the exponent's bits, and e to the rest is a polynomial. Source: Cephes' expf (Moshier).
    """

    def build(context, builder, sig, args):
        kind = floats.llvm

        def fma(a, b, c):
            return call(builder, "llvm.fma.v16f32", kind, a, b, c)

        x = args[0]
        for bound, sign in ((_LEAST, "<"), (_MOST, ">")):  # ordered: a NaN stays
            x = builder.select(builder.fcmp_ordered(sign, x, constant(kind, bound)), constant(kind, bound), x)
        raised = fma(x, constant(kind, _LOG2_E), constant(kind, _ROUND))
        whole = builder.fsub(raised, constant(kind, _ROUND))
        rest = fma(whole, constant(kind, -_LN2_HIGH), x)
        rest = fma(whole, constant(kind, -_LN2_LOW), rest)
        power = constant(kind, _EXP[0])
        for coefficient in _EXP[1:]:
            power = fma(power, rest, constant(kind, coefficient))
        power = builder.fadd(fma(power, builder.fmul(rest, rest), rest), constant(kind, 1.0))
        exponent = builder.shl(builder.bitcast(raised, ints.llvm), constant(ints.llvm, 23))
        result = builder.bitcast(builder.add(builder.bitcast(power, ints.llvm), exponent), kind)
        return builder.select(builder.fcmp_unordered("uno", args[0], args[0]), args[0], result)

    return floats(floats), build


@intrinsic
def between(typingctx, tile, first, low, high, outside):
    """The tile, with `outside` in every lane l for which low ≤ first + l < high does not hold."""

    def build(context, builder, sig, args):
        tile, first, low, high, outside = args
        kind = ir.VectorType(ir.IntType(64), 16)
        at = builder.add(spread_value(builder, first, kind), ir.Constant(kind, list(range(16))))
        inside = builder.and_(
            builder.icmp_signed(">=", at, spread_value(builder, low, kind)),
            builder.icmp_signed("<", at, spread_value(builder, high, kind)),
        )
        return builder.select(inside, tile, spread_value(builder, outside, floats.llvm))

    return floats(floats, types.int64, types.int64, types.int64, types.float32), build
