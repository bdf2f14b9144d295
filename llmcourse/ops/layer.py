"""One layer of the model, composed of the stages: what the table's `layer` is unless a table brings its own."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from llmcourse.batch import Batch


def layer(
    x: Float[Tensor, "n d"], weights, number: int, angles: tuple[Tensor, Tensor], batch: Batch, cache, parts, config
) -> Float[Tensor, "n d"]:
    """All tokens of the batch through one layer: attention, then the feed-forward network, each added to what came in.

    Args:
        x: one row a token.
        weights: the layer's `LayerWeights`; linear ones as `parts.reorder` made them.
        number: which layer, from 0.
        angles: cosine and sine of each token's position, [n, D/2] each.
    """
    h = parts.rms_norm(x, weights.attn_norm, config.rms_eps)
    x = x + attention(h, weights, number, angles, batch, cache, parts, config)
    h = parts.rms_norm(x, weights.mlp_norm, config.rms_eps)
    return x + parts.swiglu(h, weights.gate, weights.up, weights.down, parts.linear)


def attention(
    h: Float[Tensor, "n d"], weights, number: int, angles: tuple[Tensor, Tensor], batch: Batch, cache, parts, config
) -> Float[Tensor, "n d"]:
    """Project, rotate, remember, attend, project back."""
    n = batch.n_tokens
    q = parts.linear(h, weights.q, weights.q_bias).view(n, config.n_heads, config.head_dim)
    k = parts.linear(h, weights.k, weights.k_bias).view(n, config.n_kv_heads, config.head_dim)
    v = parts.linear(h, weights.v, weights.v_bias).view(n, config.n_kv_heads, config.value_dim)
    if weights.q_norm is not None:
        q = parts.rms_norm(q, weights.q_norm, config.rms_eps)
        k = parts.rms_norm(k, weights.k_norm, config.rms_eps)
    q, k = parts.rope(q, *angles), parts.rope(k, *angles)
    kv = cache.update(number, k, v, batch)
    mixed = parts.attend(q, kv, batch, config.head_dim**-0.5)
    return parts.linear(mixed.flatten(1), weights.o, weights.o_bias)
