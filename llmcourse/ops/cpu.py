"""The table for CPUs: the same stages, through the library calls that are fastest there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from llmcourse.batch import Batch
from llmcourse.cache.paged import PagedKV
from llmcourse.ops.reordered import linear, reorder
from llmcourse.ops.paged import attend_paged
from llmcourse.ops.reference import REFERENCE


def attend(
    q: Float[Tensor, "n Hq D"], kv: Sequence[tuple[Tensor, ...]], batch: Batch, scale: float
) -> Float[Tensor, "n Hq Dv"]:
    """As `reference.attend`. PyTorch's fused kernel, one call a request."""
    if isinstance(kv, PagedKV):
        return attend_paged(q, kv, batch, scale, attend_one)
    if batch.n_requests == 1:
        return attend_one(q, scale, *kv[0])
    return torch.cat([attend_one(q[batch.rows(r)], scale, *kv[r]) for r in range(batch.n_requests)])


def attend_one(
    q: Float[Tensor, "n Hq D"],
    scale: float,
    k: Float[Tensor, "T Hkv D"],
    v: Float[Tensor, "T Hkv Dv"],
    visible: Bool[Tensor, "n T"] | None = None,
) -> Float[Tensor, "n Hq Dv"]:
    """Attention of one request's last n tokens over the T that its cache returned: causal, or as `visible` says."""
    n, T = q.shape[0], k.shape[0]
    if n == 1 and visible is None:
        return decode_one(q, k, v, scale)
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    mask = visible
    # is_causal aligns query 0 with key 0, which is right only when nothing was computed before.
    if mask is None and n != T:
        mask = torch.ones(n, T, dtype=torch.bool, device=q.device).tril(diagonal=T - n)
    out = F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None, scale=scale, enable_gqa=True)
    return out[0].transpose(0, 1)


def decode_one(
    q: Float[Tensor, "1 Hq D"], k: Float[Tensor, "T Hkv D"], v: Float[Tensor, "T Hkv Dv"], scale: float
) -> Float[Tensor, "1 Hq Dv"]:
    """One query sees every key, so there is nothing to mask, and heads that share keys can pose as rows of one query."""
    Hkv, D = k.shape[1:]
    k, v = (x.transpose(0, 1)[None] for x in (k, v))
    return F.scaled_dot_product_attention(q.view(1, Hkv, -1, D), k, v, scale=scale).view(1, -1, v.shape[-1])


def rms_norm(x: Float[Tensor, "... d"], weight: Float[Tensor, "d"], eps: float) -> Float[Tensor, "... d"]:
    """As `reference.rms_norm`, in fewer passes: the norm of each row is one call."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    norm = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
    return weight * (wide * torch.rsqrt(norm * norm / x.shape[-1] + eps)).to(x.dtype)


def swiglu(
    x: Float[Tensor, "n d"],
    w_gate: Float[Tensor, "f d"],
    w_up: Float[Tensor, "f d"],
    w_down: Float[Tensor, "d f"],
    linear=linear,
) -> Float[Tensor, "n d"]:
    """As `reference.swiglu`, with silu as one call."""
    return linear(F.silu(linear(x, w_gate)) * linear(x, w_up), w_down)


CPU = replace(REFERENCE, attend=attend, rms_norm=rms_norm, swiglu=swiglu, linear=linear, reorder=reorder, name="cpu")
