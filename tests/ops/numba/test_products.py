"""W · x in every format, against the same sums in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("numba")

from llmcourse.ops.numba import plain
from llmcourse.ops.numba.activations import LEVELS, Activations
from llmcourse.ops.numba.linear import linear
from llmcourse.ops.numba.prepared import MODES
from llmcourse.ops.numba.weights import PACK
from tests.packed_model import rounded_to

INPUTS = 96


def multiply(rows, x: np.ndarray, mode: str) -> np.ndarray:
    """The kernel's product, [n, o]."""
    n, o = len(x), len(rows.raw)
    room = Activations.room(n, INPUTS)
    room.values[:] = x.reshape(-1)
    y = np.empty(n * -(-o // 16) * 16, np.float32)
    linear(PACK[rows.kind](rows.raw), room, n, INPUTS, y, MODES[mode])
    return y.reshape(n, -1)[:, :o]


def rounded_activations(x: np.ndarray, mode: str) -> np.ndarray:
    """Blocks of 32 as whole numbers times a float32 scale: the slow path, with NumPy."""
    levels = np.float32(LEVELS[len(MODES[mode])])
    blocks = x.reshape(len(x), -1, 32)
    largest = np.abs(blocks).max(-1, keepdims=True)
    up = np.divide(levels, largest, out=np.zeros_like(largest), where=largest > 1e-30)
    return (np.rint(blocks * up).astype(np.float64) * (largest / levels)).reshape(x.shape)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["Q4_1", "Q4_0", "Q8_0"])
@pytest.mark.parametrize("n", [1, 3, 8, 11])
def test_a_product_with_packed_weights_equals_the_sum_of_whole_numbers(kind, mode, n):
    """Oracle: dequantized weights times activations rounded in the same way, in float64. Bound: 3 blocks of about 30 are
    added in float32, of which the parts may cancel: 2e-5."""
    rows, exact = rounded_to(torch.from_numpy(draw(49, INPUTS)), kind)
    x = draw(n, INPUTS, seed=1)
    x[0, 32:64] = 0  # a block without a largest value
    wanted = rounded_activations(x, mode) @ exact.double().numpy().T
    np.testing.assert_allclose(multiply(rows, x, mode), wanted, rtol=0, atol=2e-5)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("n", [1, 3, 11])
def test_a_product_with_float_weights_rounds_no_activations(kind, n):
    """Oracle: float64. Bound: 96 products of size one added in float32, 1e-5."""
    rows, exact = rounded_to(torch.from_numpy(draw(49, INPUTS)), kind)
    x = draw(n, INPUTS, seed=1)
    wanted = x.astype(np.float64) @ exact.double().numpy().T
    np.testing.assert_allclose(multiply(rows, x, "fine"), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["Q4_1", "Q8_0", "F32"])
def test_a_row_has_the_same_bits_whatever_is_computed_with_it(kind):
    rows, _ = rounded_to(torch.from_numpy(draw(32, INPUTS)), kind)
    x = draw(19, INPUTS, seed=1)
    together = multiply(rows, x, "fast")
    for n in (1, 4, 9):
        for start in range(0, 19 - n + 1, 3):
            assert np.array_equal(multiply(rows, x[start : start + n], "fast"), together[start : start + n])


@pytest.mark.parametrize("mode", MODES)
def test_the_largest_codes_do_not_overflow(mode):
    """255 · 127 twice is more than int16 holds, which AVX2's instruction would cut off without a word. Oracle: float64; the
    sums are whole numbers up to 32 · 127 · 127, so the bound is one rounding of each of 3 blocks: 1e-6 relative."""
    raw = np.tile(np.frombuffer(np.float16(1).tobytes() + bytes([127] * 32), np.uint8), (16, 3))
    from llmcourse.ops.numba.weights import Rows

    x = np.full((1, INPUTS), -127, np.float32)
    np.testing.assert_allclose(multiply(Rows("Q8_0", raw), x, mode), np.full((1, 16), -127.0 * 127 * 96), rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mode", MODES)
def test_an_activation_that_is_not_finite_spoils_its_own_row_and_no_other(bad, mode):
    rows, _ = rounded_to(torch.from_numpy(draw(32, INPUTS)), "Q4_1")
    x = draw(9, INPUTS, seed=1)
    clean = multiply(rows, x, mode)
    x[4, 70] = bad
    spoiled = multiply(rows, x, mode)
    assert not np.isfinite(spoiled[4]).any()
    others = [0, 1, 2, 3, 5, 6, 7, 8]
    assert np.array_equal(spoiled[others], clean[others])


def test_the_plain_loops_give_the_product_of_the_tiles():
    """Bound: the same whole numbers; each of 3 blocks is rounded once more or less: 1e-5."""
    rows, _ = rounded_to(torch.from_numpy(draw(128, INPUTS)), "Q4_1")
    blocks = rows.raw.reshape(128, 3, 20)
    scale, low = (np.ascontiguousarray(blocks[..., i : i + 2]).view(np.float16)[..., 0].astype(np.float32) for i in (0, 2))
    codes = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], -1)
    x = draw(1, INPUTS, seed=1)
    wanted = multiply(rows, x, "fast")[0]
    largest = np.abs(x.reshape(3, 32)).max(1)
    x_codes = np.rint(x.reshape(3, 32) * (np.float32(127) / largest)[:, None]).astype(np.int8)
    x_scale = largest / np.float32(127)
    y = np.empty(128, np.float32)
    plain.one_by_one(scale, low, codes, x_scale, x_codes, y)
    np.testing.assert_allclose(y, wanted, rtol=0, atol=1e-5)
    tiled, tiled_scale, tiled_low = plain.pack(scale, low, codes)
    plain.by_rows(tiled, tiled_scale, tiled_low, x_scale, x_scale * x_codes.sum(1, dtype=np.float32), x_codes, y)
    np.testing.assert_allclose(y, wanted, rtol=0, atol=1e-5)
