"""Linear weights laid out for oneDNN, the library behind PyTorch's CPU matrix products.

A weight in PyTorch's plain row order makes a decode step wait: one row times a matrix reads each weight once, and oneDNN
reads its own blocked order about twice as fast (`benchmarks/`). The values are the same; only their order in memory differs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class ReorderedWeight:
    """A linear weight [o, i] in oneDNN's blocked order; only `linear` of this module can multiply with it.

    Args:
        blocked: the values in that order.
        ordinary: the tensor that it was made from. A model keeps its plain weights anyway, so to remember it costs nothing.
    """

    blocked: Tensor
    ordinary: Tensor

    @property
    def shape(self) -> torch.Size:
        """[o, i], as of the plain weight."""
        return self.blocked.shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the values."""
        return self.blocked.dtype

    def plain(self) -> Float[Tensor, "o i"]:
        """The values in the ordinary order: the very tensor that was reordered, no copy."""
        return self.ordinary


def reorder(W: Float[Tensor, "o i"]) -> ReorderedWeight | Float[Tensor, "o i"]:
    """The weight in blocked order where this machine's oneDNN has a kernel for its dtype, else the weight as it is."""
    if W.device.type != "cpu" or not _has_kernel(W.dtype):
        return W
    return ReorderedWeight(torch.ops.mkldnn._reorder_linear_weight(W, 1), W)


def linear(
    x: Float[Tensor, "n i"], W: ReorderedWeight | Float[Tensor, "o i"], bias: Float[Tensor, "o"] | None = None
) -> Float[Tensor, "n o"]:
    """x · Wᵀ (+ bias), for a reordered or a plain weight."""
    if isinstance(W, ReorderedWeight):
        return torch.ops.mkldnn._linear_pointwise(x, W.blocked, bias, "none", [], "")
    return F.linear(x, W, bias)


def _has_kernel(dtype: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    if dtype == torch.bfloat16:
        return torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return dtype == torch.float32
