"""Values in 8 or 4 bits: groups with a scale and a minimum each, and codes that are packed."""

from __future__ import annotations

from math import gcd

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from llmcourse.cache.codes import pack, unpack
from llmcourse.cache.slots import grown

_SCALE_DTYPE = torch.bfloat16  # the range of float32 in two bytes
_ROUND_UP = 1 + 2**-8  # rounded to bfloat16 after this, a scale is never smaller than it was


class CodedTokens:
    """One request's keys, or its values, of all layers: codes that are packed, with scales and minima.

    Args:
        shape: (L, Hkv, D).
        bits: 8 or 4.
        block, group: `block` tokens times `group` channels share a scale and a minimum. Where D is no multiple of
            `group`, the largest common divisor counts.
        capacity: the most tokens. `make_room` takes memory for some, and twice as much as before when it is full.
    """

    def __init__(self, shape: tuple[int, int, int], bits: int, block: int, group: int, capacity: int, dtype, device):
        n_layers, n_kv_heads, head_dim = shape
        self.bits, self.block, self.group = bits, block, gcd(group, head_dim)
        self.capacity = -(-capacity // block) * block
        empty, n_groups = (n_layers, n_kv_heads, 0), head_dim // self.group
        self.codes = torch.empty(*empty, head_dim * bits // 8, dtype=torch.uint8, device=device)
        self.scale = torch.empty(*empty, n_groups, dtype=_SCALE_DTYPE, device=device)
        self.low = torch.empty(*empty, n_groups, dtype=dtype, device=device)

    def make_room(self, n: int) -> None:
        """Room for n tokens, whole blocks."""
        self.codes = grown(self.codes, 2, n, self.capacity)
        self.scale, self.low = (
            grown(tensor, 2, n // self.block, self.capacity // self.block) for tensor in (self.scale, self.low)
        )

    def write(self, layer: int, start: int, x: Float[Tensor, "Hkv n D"]) -> None:
        """Quantize n tokens, whole blocks, into positions from `start` on; there must be room."""
        stop = start + x.shape[1]
        codes, scale, low = quantize(x, self.bits, self.block, self.group)
        blocks = slice(start // self.block, stop // self.block)
        self.codes[layer, :, start:stop] = pack(codes, self.bits)
        self.scale[layer, :, blocks], self.low[layer, :, blocks] = scale, low

    def read(self, layer: int, n: int) -> Float[Tensor, "Hkv n D"]:
        """The first n tokens, whole blocks, as numbers again."""
        codes, blocks = unpack(self.codes[layer, :, :n], self.bits), n // self.block
        return dequantize(codes, self.scale[layer, :, :blocks], self.low[layer, :, :blocks], self.block, self.group)

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """All that is held."""
        return self.codes, self.scale, self.low

    def bytes_for(self, n_tokens: int) -> int:
        """Bytes of n tokens, whole blocks."""
        per_block = self.block * self.codes.shape[3] + self.low.shape[3] * (_SCALE_DTYPE.itemsize + self.low.dtype.itemsize)
        return self.codes.shape[0] * self.codes.shape[1] * per_block * (n_tokens // self.block)


def quantize(
    x: Float[Tensor, "H n D"], bits: int, block: int, group: int
) -> tuple[UInt8[Tensor, "H n D"], Float[Tensor, "H n/block D/group"], Float[Tensor, "H n/block D/group"]]:
    """Codes 0 to 2^bits − 1 on an even grid from each group's minimum to its maximum.

    `block` tokens times `group` channels are a group. The minimum is kept as it is, so a constant group is exact. The
    scale is rounded up to bfloat16 before codes are chosen: the grid still spans the group, and an error is at most half
    a scale.

    Returns codes, scale, minimum.
    """
    H, n, D = x.shape
    wide = x.to(torch.promote_types(x.dtype, torch.float32)).reshape(H, n // block, block, D // group, group)
    low, high = wide.amin((2, 4), keepdim=True), wide.amax((2, 4), keepdim=True)
    scale = ((high - low) / (2**bits - 1) * _ROUND_UP).to(_SCALE_DTYPE)
    step = scale.to(wide.dtype)
    step = torch.where(step == 0, 1, step)  # a constant group: every code is 0
    codes = ((wide - low) / step).round().clamp(0, 2**bits - 1).to(torch.uint8)
    return codes.reshape(H, n, D), scale[:, :, 0, :, 0], low[:, :, 0, :, 0].to(x.dtype)


def dequantize(
    codes: UInt8[Tensor, "H n D"], scale: Float[Tensor, "H m h"], low: Float[Tensor, "H m h"], block: int, group: int
) -> Float[Tensor, "H n D"]:
    """code · scale + minimum, in the minimum's dtype."""
    H, n, D = codes.shape
    wide = torch.promote_types(low.dtype, torch.float32)
    grouped = codes.reshape(H, n // block, block, D // group, group).to(wide)
    x = grouped * scale[:, :, None, :, None] + low[:, :, None, :, None]
    return x.to(low.dtype).reshape(H, n, D)
