"""The reference table: every numerical stage in plain PyTorch, to be read. Faster tables are tested against it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from llmcourse.batch import Batch
from llmcourse.ops.parts import Parts
from llmcourse.ops.sampling import sample


def embed(ids: Int[Tensor, "n"], table: Float[Tensor, "V d"]) -> Float[Tensor, "n d"]:
    """One row of the table per token."""
    return table[ids]


def rms_norm(x: Float[Tensor, "... d"], weight: Float[Tensor, "d"], eps: float) -> Float[Tensor, "... d"]:
    """Divide each row by its root mean square, then scale each channel.

    Statistics are taken in float32 or wider: in bfloat16 the mean of squares would keep 8 bits. `eps` stands inside the
    root, so that a row of zeros stays zero.

    Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", eq. 4; rounding as in Llama's code.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return weight * normed.to(x.dtype)


def rope_angles(
    positions: Int[Tensor, "n"], head_dim: int, theta: float, scaling=None
) -> tuple[Float[Tensor, "n D/2"], Float[Tensor, "n D/2"]]:
    """Cosine and sine of the angle by which each pair of channels turns at each position.

    Pair i turns by position · theta^(−2i/D) radians, pair 0 fastest. Computed in float32, whatever the model's dtype:
    a bfloat16 position is off by up to 32 at position 8,000. Float32 leaves an error of about position · 2⁻²⁴ radians
    (1e-3 at 16,000), the same that the models were trained with.

    Args:
        scaling: None, or the `RopeScaling` of a model whose context was stretched after training.

    Source: Su et al. 2021, "RoFormer", §3.2.2; scaling as in Meta's Llama 3.1 reference code.
    """
    exponents = torch.arange(0, head_dim, 2, device=positions.device, dtype=torch.float32) / head_dim
    frequencies = 1.0 / theta**exponents
    if scaling is not None:
        frequencies = scale_frequencies(frequencies, scaling)
    angles = positions.to(torch.float32)[:, None] * frequencies[None, :]
    return angles.cos(), angles.sin()


def scale_frequencies(frequencies: Float[Tensor, "D/2"], scaling) -> Float[Tensor, "D/2"]:
    """Slow the rotation down, so that a longer text turns no further than the texts of the training did.

    `linear` divides every frequency by the factor. `llama3` divides only the slow ones (those that turn less than
    `low_freq_factor` times within the original context), keeps the fast ones (more than `high_freq_factor` turns), and
    blends in between.
    """
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    turns = scaling.original_context * frequencies / (2 * math.pi)
    keep = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    keep = keep.clamp(0.0, 1.0)
    return (1 - keep) * frequencies / scaling.factor + keep * frequencies


def rope(
    x: Float[Tensor, "n H D"], cos: Float[Tensor, "n D/2"], sin: Float[Tensor, "n D/2"]
) -> Float[Tensor, "n H D"]:
    """Rotate channel i together with channel i + D/2 (the half-split layout of Hugging Face's Llama weights).

    The products are taken in float32 or wider and rounded once.
    """
    wide = torch.promote_types(x.dtype, cos.dtype)
    first, second = x.to(wide).chunk(2, dim=-1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)


def linear(
    x: Float[Tensor, "n i"], W: Float[Tensor, "o i"], bias: Float[Tensor, "o"] | None = None
) -> Float[Tensor, "n o"]:
    """x · Wᵀ (+ bias). Weights are stored [out, in]."""
    y = x @ W.T
    return y if bias is None else y + bias


def attend(
    q: Float[Tensor, "n Hq D"], kv: Sequence[tuple[Tensor, ...]], batch: Batch, scale: float
) -> Float[Tensor, "n Hq Dv"]:
    """Causal attention of every request's new tokens over what its cache kept.

    Args:
        q: queries of all requests, end to end.
        kv: what the cache returned for this layer: for each request (K, V), [T', Hkv, D] and [T', Hkv, Dv], or
            (K, V, visible) with visible [n, T'] telling which of these keys each of its rows may see.
        scale: usually 1/√D.
    """
    out = q.new_empty(*q.shape[:2], kv[0][1].shape[-1])
    for r in range(batch.n_requests):
        k, v, *visible = kv[r]
        out[batch.rows(r)] = grouped_attention(q[batch.rows(r)], k, v, scale, *visible)
    return out


def grouped_attention(
    q: Float[Tensor, "n Hq D"],
    k: Float[Tensor, "T Hkv D"],
    v: Float[Tensor, "T Hkv Dv"],
    scale: float,
    visible: Bool[Tensor, "n T"] | None = None,
) -> Float[Tensor, "n Hq Dv"]:
    """Attention of the last n tokens over all T tokens of one request; Hq/Hkv query heads share a key/value head.

    Query row i sees the keys that row i of `visible` marks. Without it, row i stands at position T − n + i and sees
    keys 0 to that position. Softmax in float32 or wider.

    Source: Vaswani et al. 2017, eq. 1; Ainslie et al. 2023, "GQA".
    """
    n, T = q.shape[0], k.shape[0]
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    scores = torch.einsum("nhd,thd->hnt", q, k) * scale
    if visible is None:
        visible = torch.ones(n, T, dtype=torch.bool, device=q.device).tril(diagonal=T - n)
    scores = scores.masked_fill(~visible, float("-inf"))
    weights = scores.softmax(-1, dtype=torch.promote_types(q.dtype, torch.float32)).to(q.dtype)
    return torch.einsum("hnt,thd->nhd", weights, v)


def swiglu(
    x: Float[Tensor, "n d"],
    w_gate: Float[Tensor, "f d"],
    w_up: Float[Tensor, "f d"],
    w_down: Float[Tensor, "d f"],
    linear=linear,
) -> Float[Tensor, "n d"]:
    """down( silu(gate(x)) · up(x) ): the gate decides, channel by channel, how much of `up` passes.

    Source: Shazeer 2020, "GLU Variants Improve Transformer", eq. 6, with silu(a) = a · sigmoid(a).
    """
    gate = linear(x, w_gate)
    return linear(gate * torch.sigmoid(gate) * linear(x, w_up), w_down)


REFERENCE = Parts(
    embed=embed,
    rms_norm=rms_norm,
    rope_angles=rope_angles,
    rope=rope,
    linear=linear,
    attend=attend,
    swiglu=swiglu,
    sample=sample,
    name="reference",
)
