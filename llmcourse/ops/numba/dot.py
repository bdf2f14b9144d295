"""Four products and their sum in one instruction: what makes products of whole numbers faster than those of floats.

`dot4` adds to each of 16 ints the sum of four products, codes of 0 to 255 times activations of −127 to 127. The instruction
differs: `vpdpbusd` (AVX-512 VNNI, AVX-VNNI), `pmaddubsw` (AVX2), `usdot` or `sdot` (ARM). All results are exact, so all
machines give the same numbers. `features` is what the compiler says of the processor it compiles for.
"""

from __future__ import annotations

from llvmlite import ir

from llmcourse.ops.numba.simd import I8, I16, I32, call, constant, ints, pick

_SEVEN_BITS = 127


def dot4(builder, features: frozenset[str], acc, codes, x, small: bool):
    """acc[r] + Σ codes[4r + j] · x[4r + j] over j = 0…3, for 16 rows r.

    acc: <16 x i32>; codes, x: <64 x i8>, codes unsigned and x signed. `small`: all codes are below 128.
    """
    if "avx512vnni" in features:
        return call(builder, "llvm.x86.avx512.vpdpbusd.512", ints.llvm, acc, *_in_ints(builder, codes, x))
    if "avx2" in features:
        return _in_parts(builder, 2, _avx2(builder, features, small), acc, codes, x)
    if "dotprod" in features:
        return _in_parts(builder, 4, _arm(builder, features, small), acc, codes, x)
    return _spelled_out(builder, acc, codes, x)


def _in_ints(builder, *vectors):
    """The same bits as vectors of int32: how vpdpbusd was declared up to LLVM 21; later ones translate."""
    return [builder.bitcast(vector, ir.VectorType(I32, vector.type.count // 4)) for vector in vectors]


def _in_parts(builder, n: int, part, acc, codes, x):
    """Do `part` on each n-th of the lanes and put the results together."""
    rows, count = 16 // n, 64 // n
    done = [
        part(
            pick(builder, acc, range(i * rows, (i + 1) * rows)),
            pick(builder, codes, range(i * count, (i + 1) * count)),
            pick(builder, x, range(i * count, (i + 1) * count)),
        )
        for i in range(n)
    ]
    while len(done) > 1:
        lanes = ir.Constant(ir.VectorType(I32, 2 * done[0].type.count), list(range(2 * done[0].type.count)))
        done = [builder.shuffle_vector(a, b, lanes) for a, b in zip(done[::2], done[1::2])]
    return done[0]


def _avx2(builder, features, small: bool):
    """8 rows with 32-byte registers."""
    pairs, row8, byte32 = ir.VectorType(I16, 16), ir.VectorType(I32, 8), ir.VectorType(I8, 32)

    def multiply(codes, x, factor: int):
        # pmaddubsw adds two neighbouring products in int16 and cuts what does not fit: 2 · 127 · 127 = 32,258 does fit,
        # 2 · 255 · 127 does not.
        sums = call(builder, "llvm.x86.avx2.pmadd.ub.sw", pairs, codes, x)
        return call(builder, "llvm.x86.avx2.pmadd.wd", row8, sums, constant(pairs, factor))

    def part(acc, codes, x):
        if "avxvnni" in features:
            return call(builder, "llvm.x86.avx512.vpdpbusd.256", row8, acc, *_in_ints(builder, codes, x))
        if not small:  # the highest bit apart
            acc = builder.add(acc, multiply(builder.lshr(codes, constant(byte32, 7)), x, 128))
            codes = builder.and_(codes, constant(byte32, _SEVEN_BITS))
        return builder.add(acc, multiply(codes, x, 1))

    return part


def _arm(builder, features, small: bool):
    """4 rows with 16-byte registers. `sdot` takes signed bytes; codes above 127 need `usdot`, or a way around."""
    row4, byte16 = ir.VectorType(I32, 4), ir.VectorType(I8, 16)

    def dot(name: str, acc, a, b):
        return call(builder, f"llvm.aarch64.neon.{name}.v4i32.v16i8", row4, acc, a, b)

    def part(acc, codes, x):
        if small:
            return dot("sdot", acc, codes, x)
        if "i8mm" in features:
            return dot("usdot", acc, codes, x)
        acc = dot("sdot", acc, builder.xor(codes, constant(byte16, -128)), x)  # codes − 128 as signed bytes
        for _ in range(2):  # and 128 · Σ x, since 128 itself is no signed byte
            acc = dot("sdot", acc, constant(byte16, 64), x)
        return acc

    return part


def _spelled_out(builder, acc, codes, x):
    """Any other processor: lanes 0, 4, 8, …, then lanes 1, 5, 9, …"""
    for j in range(4):
        lanes = range(j, 64, 4)
        a = builder.zext(pick(builder, codes, lanes), ints.llvm)
        acc = builder.add(acc, builder.mul(a, builder.sext(pick(builder, x, lanes), ints.llvm)))
    return acc


def features_of(flat: str) -> frozenset[str]:
    """The names that are switched on in LLVM's list, such as "+avx2,-avx512f,+fma"."""
    return frozenset(word[1:] for word in flat.split(",") if word.startswith("+"))
