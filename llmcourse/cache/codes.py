"""Codes in bytes: two 4-bit codes share one."""

from __future__ import annotations

import torch
from jaxtyping import UInt8
from torch import Tensor


def pack(codes: UInt8[Tensor, "... D"], bits: int) -> UInt8[Tensor, "... D*bits/8"]:
    """Codes of 4 bits two in a byte: channel j in the low half, channel j + D/2 in the high half. 8 bits: as they are."""
    if bits == 8:
        return codes
    low, high = codes.chunk(2, dim=-1)
    return low | (high << 4)


def unpack(packed: UInt8[Tensor, "... D*bits/8"], bits: int) -> UInt8[Tensor, "... D"]:
    """The codes that were packed."""
    return packed if bits == 8 else torch.cat([packed & 15, packed >> 4], dim=-1)
