"""Tiles: 16 floats, 16 ints or 64 bytes as one value of a kernel.

numba compiles loops over single numbers and hopes that LLVM makes vector instructions of them. A tile says it outright, as a
program of a GPU grid does. LLVM splits a tile where registers are shorter: two for AVX2, four for ARM.

Arrays are flat and an index counts elements. Of float32 arrays a tile is read as it is, of uint16 arrays as the bits of
float16, of int16 arrays as the bits of bfloat16; both widen exactly.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

I8, I16, I32 = ir.IntType(8), ir.IntType(16), ir.IntType(32)
F16, F32 = ir.HalfType(), ir.FloatType()


class Tile(types.Type):
    """The type of a vector value: `Tile(name, element type, lanes)`."""

    def __init__(self, name: str, element, lanes: int):
        super().__init__(name)
        self.llvm = ir.VectorType(element, lanes)


@register_model(Tile)
class _TileModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, fe_type.llvm)


bytes64, ints, floats = Tile("bytes64", I8, 64), Tile("ints", I32, 16), Tile("floats", F32, 16)


def constant(kind: ir.VectorType, value) -> ir.Constant:
    """A vector that holds `value` in every lane."""
    return ir.Constant(kind, [value] * kind.count)


def pick(builder, vector, lanes):
    """The vector made of these lanes, in this order."""
    lanes = list(lanes)
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))


def spread_value(builder, value, kind: ir.VectorType):
    """A vector that holds one value, known when the kernel runs, in every lane."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0))
    return builder.shuffle_vector(one, one, constant(ir.VectorType(I32, kind.count), 0))


def call(builder, name: str, result, *args):
    """Call an intrinsic function of LLVM."""
    kind = ir.FunctionType(result, [a.type for a in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


def address(context, builder, array_type, array, index, element):
    """Address of array[index] as a pointer to `element`; the array is flat, and the index in it."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), element.as_pointer())


def widened(context, builder, array_type, array, index, lanes: int):
    """`lanes` numbers from array[index] as float32: a vector, or for one lane a single number."""
    shape = (lambda element: ir.VectorType(element, lanes)) if lanes > 1 else (lambda element: element)
    stored = {types.float32: F32, types.uint16: F16, types.int16: I16}[array_type.dtype]
    value = builder.load(address(context, builder, array_type, array, index, shape(stored)), align=stored_bytes(stored))
    if stored is F16:
        return builder.fpext(value, shape(F32))
    if stored is I16:
        up = builder.zext(value, shape(I32))
        sixteen = constant(shape(I32), 16) if lanes > 1 else I32(16)
        return builder.bitcast(builder.shl(up, sixteen), shape(F32))
    return value


def stored_bytes(element) -> int:
    """Bytes of an element: all that may be said of an address in an array."""
    return 4 if element is F32 else 2


def narrowed(context, builder, array_type, array, index, value):
    """Write float32 numbers, rounded where the array holds float16."""
    half = array_type.dtype == types.uint16
    kind = value.type
    if half:
        kind = ir.VectorType(F16, kind.count) if isinstance(kind, ir.VectorType) else F16
    pointer = address(context, builder, array_type, array, index, kind)
    builder.store(builder.fptrunc(value, kind) if half else value, pointer, align=2 if half else 4)
    return context.get_dummy_value()


@intrinsic
def load(typingctx, array, index):
    """array[index : index + 16] as float32."""
    return floats(array, types.intp), lambda c, b, sig, args: widened(c, b, sig.args[0], *args, 16)


@intrinsic
def load_one(typingctx, array, index):
    """array[index] as one float32."""
    return types.float32(array, types.intp), lambda c, b, sig, args: widened(c, b, sig.args[0], *args, 1)


@intrinsic
def load_bytes(typingctx, array, index):
    """64 bytes from array[index]."""

    def build(context, builder, sig, args):
        return builder.load(address(context, builder, sig.args[0], *args, bytes64.llvm), align=1)

    return bytes64(array, types.intp), build


@intrinsic
def store(typingctx, array, index, tile):
    """array[index : index + 16] = tile."""
    return types.void(array, types.intp, floats), lambda c, b, sig, args: narrowed(c, b, sig.args[0], *args)


@intrinsic
def store_one(typingctx, array, index, value):
    """array[index] = value, one float32."""
    return types.void(array, types.intp, types.float32), lambda c, b, sig, args: narrowed(c, b, sig.args[0], *args)


@intrinsic
def store_low_bytes(typingctx, array, index, tile):
    """array[index : index + 16] = the ints, each cut to its lowest byte."""

    def build(context, builder, sig, args):
        array, index, tile = args
        small = builder.trunc(tile, ir.VectorType(I8, 16))
        builder.store(small, address(context, builder, sig.args[0], array, index, small.type), align=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, ints), build


@intrinsic
def splat(typingctx, value):
    """16 times the same float32."""
    return floats(types.float32), lambda c, b, sig, args: spread_value(b, args[0], floats.llvm)


@intrinsic
def splat_int(typingctx, value):
    """16 times the same int32."""
    return ints(types.int32), lambda c, b, sig, args: spread_value(b, args[0], ints.llvm)


def _binary(name: str, kind: Tile, text: str):
    def typed(typingctx, a, b):
        return kind(kind, kind), lambda context, builder, sig, args: getattr(builder, name)(*args)

    typed.__doc__ = text
    return intrinsic(typed)


add = _binary("fadd", floats, "a + b, lane by lane.")
mul = _binary("fmul", floats, "a · b, lane by lane.")
div = _binary("fdiv", floats, "a / b, lane by lane.")
add_ints = _binary("add", ints, "a + b of ints, lane by lane.")
sub_ints = _binary("sub", ints, "a − b of ints, lane by lane.")


@intrinsic
def low_nibbles(typingctx, tile):
    """The lower four bits of each byte."""
    return bytes64(bytes64), lambda c, b, sig, args: b.and_(args[0], constant(bytes64.llvm, 15))


@intrinsic
def high_nibbles(typingctx, tile):
    """The upper four bits of each byte."""
    return bytes64(bytes64), lambda c, b, sig, args: b.lshr(args[0], constant(bytes64.llvm, 4))
