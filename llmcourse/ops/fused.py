"""The table for accelerators: the CPU's library calls, with attention in the form that every fused kernel takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right

from llmcourse.batch import Batch
from llmcourse.ops.cpu import decode_one, rms_norm, swiglu
from llmcourse.ops.reference import REFERENCE, linear


def attend(
    q: Float[Tensor, "n Hq D"], kv: Sequence[tuple[Tensor, ...]], batch: Batch, scale: float
) -> Float[Tensor, "n Hq Dv"]:
    """As `reference.attend`, without a matrix of all scores: PyTorch's fused kernels, one call a request."""
    outs = [attend_one(q[batch.rows(r)], scale, *kv[r]) for r in range(batch.n_requests)]
    return outs[0] if len(outs) == 1 else torch.cat(outs)


def attend_one(
    q: Float[Tensor, "n Hq D"],
    scale: float,
    k: Float[Tensor, "T Hkv D"],
    v: Float[Tensor, "T Hkv Dv"],
    visible: Bool[Tensor, "n T"] | None = None,
) -> Float[Tensor, "n Hq Dv"]:
    """Attention of one request's last n tokens over the T that its cache returned: causal, or as `visible` says.

    The keys of shared heads are repeated: kernels for float32 or with a mask take no grouped heads, and the way without
    a kernel would write out every score (6 GB a layer for a prompt of 8,000 tokens and 24 heads, in float32).
    """
    n, T = q.shape[0], k.shape[0]
    if n == 1 and visible is None:
        return decode_one(q, k, v, scale)
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) if group > 1 else x for x in (k, v))
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    # Causal with a past: the last query stands at the last key. `is_causal` would put the first at the first.
    mask = causal_lower_right(n, T) if visible is None and n != T else visible
    out = F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None, scale=scale)
    return out[0].transpose(0, 1)


FUSED = replace(REFERENCE, attend=attend, rms_norm=rms_norm, swiglu=swiglu, linear=linear, name="fused")
