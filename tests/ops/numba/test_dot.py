"""The instruction that each processor has for four products: seen in the machine code, compiled for that processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

import llvmlite.binding as llvm
from llvmlite import ir

from llmcourse.ops.numba.dot import dot4
from llmcourse.ops.numba.simd import bytes64, ints


def assembly(triple: str, cpu: str, features: str, small: bool) -> str:
    """dot4 as a function of its own, compiled for any processor that LLVM knows."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = ir.Module("dot")
    module.triple = triple
    function = ir.Function(module, ir.FunctionType(ints.llvm, [ints.llvm, bytes64.llvm, bytes64.llvm]), "dot")
    builder = ir.IRBuilder(function.append_basic_block())
    names = frozenset(word.strip("+") for word in features.split(","))
    builder.ret(dot4(builder, names, *function.args, small))
    parsed = llvm.parse_assembly(str(module))
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3)
    return machine.emit_assembly(parsed)


@pytest.mark.parametrize(
    "features, small, wanted",
    [("+dotprod", True, "sdot"), ("+dotprod,+i8mm", False, "usdot"), ("+dotprod", False, "sdot")],
)
def test_arm_multiplies_four_at_a_time(features, small, wanted):
    text = assembly("aarch64-unknown-linux-gnu", "generic", f"+neon,{features}", small)
    counted = text.count(f"\t{wanted}\t")
    assert counted == {("sdot", False): 12}.get((wanted, small), 4)  # four registers of four rows; around: three each
    assert "mul\t" not in text


@pytest.mark.parametrize(
    "cpu, features, small, wanted, n",
    [
        ("haswell", "+avx2", True, "vpmaddubsw", 2), ("haswell", "+avx2", False, "vpmaddubsw", 4),
        ("sapphirerapids", "+avx512vnni,+avx512f", False, "vpdpbusd", 1), ("alderlake", "+avx2,+avxvnni", False, "vpdpbusd", 2),
    ],
)  # fmt: skip
def test_x86_multiplies_four_at_a_time(cpu, features, small, wanted, n):
    assert assembly("x86_64-unknown-linux-gnu", cpu, features, small).count(f"\t{wanted}\t") == n


_IN_A_PROCESS = """
import hashlib, sys, numpy as np
sys.path.insert(0, {root!r})
from tests.ops.numba.test_products import draw, multiply, rounded_to, torch
done = hashlib.sha256()
for kind in ("Q4_1", "Q8_0"):
    rows, _ = rounded_to(torch.from_numpy(draw(32, 96)), kind)
    done.update(multiply(rows, draw(5, 96, seed=1), "fast").tobytes())
print(done.hexdigest())
"""
_HASWELL = "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+cmov,+cx16"


@pytest.mark.skipif(not llvm.get_host_cpu_features().get("avx2"), reason="this processor has no AVX2 instructions")
def test_a_processor_with_avx2_alone_gives_the_same_bits():
    """Whole numbers are exact, and each scale is applied in the same order: nothing depends on the registers' length."""
    root = str(Path(__file__).parents[3])
    told = []
    for settings in ({}, {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": _HASWELL}):
        done = subprocess.run([sys.executable, "-c", _IN_A_PROCESS.format(root=root)], env={**os.environ, **settings},
                              capture_output=True, text=True, check=True)  # fmt: skip
        told.append(done.stdout)
    assert told[0] == told[1] != ""
