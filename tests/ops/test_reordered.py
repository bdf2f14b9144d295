"""Weights in oneDNN's order: the same values, the same products."""

from __future__ import annotations

import pytest
import torch

from llmcourse.ops import reordered, reference


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("n", [1, 2, 33])
def test_a_packed_weight_gives_the_products_of_the_plain_one(dtype, n):
    """Oracle: float64. Bound: results up to 40. Float32 rounds them by up to 2e-6 at each of 96 additions, some of
    which cancel: 3e-5. Below it, half a unit in the last place, once for the product and once for the bias."""
    W, x, bias = draw(31, 96).to(dtype), draw(n, 96, seed=1).to(dtype), draw(31, seed=2).to(dtype)
    atol = {torch.bfloat16: 0.25, torch.float16: 0.04}.get(dtype, 3e-5)
    exact = reference.linear(x.double(), W.double(), bias.double())
    for made in (reordered.linear(x, reordered.reorder(W), bias), reordered.linear(x, W, bias)):
        torch.testing.assert_close(made.double(), exact, rtol=0, atol=atol)
    assert reordered.linear(x, reordered.reorder(W)).dtype == dtype


def test_packing_keeps_every_value_and_the_shape():
    W = draw(31, 96)
    made = reordered.reorder(W)
    if isinstance(made, torch.Tensor):
        pytest.skip("this build of PyTorch has no oneDNN kernel for float32: weights stay plain")
    assert torch.equal(made.blocked.to_dense(), W) and made.shape == W.shape and made.dtype == W.dtype


def test_the_plain_weight_is_there_without_unpacking():
    W = draw(31, 96)
    made = reordered.reorder(W)
    assert made is W or made.plain() is W


def test_dtypes_without_a_kernel_stay_plain():
    W = draw(5, 7).double()
    assert reordered.reorder(W) is W
