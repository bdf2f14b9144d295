"""What the probes of lab 04 are made from: hints, and a layer and a model that are tiny, random, with all sizes different
and no setting a default."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .sizes import Sizes

HINTS = {
    "rms_norm": (
        "How long is a row, per channel? Divide by that, and the row has size 1. Which numbers take part in it, and in "
        "which dtype do you add them up?",
        "y = weight · x / √(mean(x²) + eps), the mean over the last axis.",
        "wide = x.float(); mean_square = wide.square().mean(-1, keepdim=True); divide wide by "
        "torch.sqrt(mean_square + eps); go back to x.dtype; multiply with weight.",
    ),
    "swiglu": (
        "x goes through two matrices side by side. Which of the two results is a decision, and which is the content?",
        "y = ( silu(x · w_gateᵀ) · (x · w_upᵀ) ) · w_downᵀ, with silu(a) = a · sigmoid(a).",
        "gate = x @ w_gate.T and up = x @ w_up.T, both [n, f]; gate * torch.sigmoid(gate) * up; then @ w_down.T.",
    ),
    "block": (
        "Draw the residual stream as a straight line. Two things branch off it and come back with a plus. What does each "
        "of them read?",
        "x = x + o(attention(norm(x, attn_norm))); then x = x + swiglu(norm(x, mlp_norm)).",
        "h = rms_norm(x, weights.attn_norm, config.rms_eps); q = (h @ weights.q.T).view(n, Hq, D), k and v with Hkv; "
        "apply_rope to q and k; grouped_attention(q, k, v, 0); reshape to [n, Hq·D]; @ weights.o.T; add to x. "
        "Then rms_norm with weights.mlp_norm, swiglu with gate, up, down; add to x.",
    ),
    "forward": (
        "From below: ids to rows, angles, L layers one after the other. From above: what turns a row of d numbers into a "
        "score for each of V tokens, and what stands right before it?",
        "x = embed[ids]; for each layer x = block(x, …); logits = rms_norm(x, norm) · headᵀ, where the head is embed if "
        "config.tied.",
        "x = weights.embed[ids]; cos, sin = rope_angles(torch.arange(len(ids)), config.head_dim, config.rope_theta); for "
        "layer in weights.layers: x = block(x, layer, cos, sin, config); x = rms_norm(x, weights.norm, config.rms_eps); "
        "return x @ head.T with head = weights.embed if config.tied else weights.head.",
    ),
}


# Hq·D = 60 is not d, so a missing o projection cannot go unseen by shape; three query heads share a key/value head.
TINY = Sizes(
    vocab_size=41, width=28, n_layers=3, n_heads=6, n_kv_heads=2, head_dim=10, ffn_width=34, rms_eps=0.03, rope_theta=300.0,
    tied=False,
)  # fmt: skip
TIED = replace(TINY, tied=True)
SQUARE = replace(TINY, width=60)  # Hq·D = d, as in SmolLM2: here only the values tell that o is missing
GAIN = 1.5  # of a random matrix: large enough that attention and gates are far from flat


@dataclass(frozen=True)
class Layer:
    """One layer's weights under the names that `block` reads; shapes as in `llmcourse.model.weights.LayerWeights`."""

    attn_norm: object
    q: object
    k: object
    v: object
    o: object
    mlp_norm: object
    gate: object
    up: object
    down: object


@dataclass(frozen=True)
class Model:
    """A model's weights under the names that `forward` reads."""

    embed: object
    layers: tuple[Layer, ...]
    norm: object
    head: object


def centred(rng, n: int, d: int):
    """Rows [n, d] with mean 0: whether a mean is taken out is the question of one probe only."""
    x = rng.normal(n, d)
    return x - x.mean(-1, keepdim=True)


def one_channel(rng, a, b):
    """Inputs for `swiglu` whose gate is a and whose up is b, at every one of f = 3 channels; w_down is drawn [2, 3]."""
    import torch

    x = torch.stack([a, b], dim=1)
    first, second = torch.tensor([1.0, 0.0]).repeat(3, 1), torch.tensor([0.0, 1.0]).repeat(3, 1)
    return x, first, second, rng.uniform(2, 3, low=1, high=2)


def matrix(rng, out: int, into: int):
    """A random weight [out, in]."""
    return GAIN * into**-0.5 * rng.normal(out, into)


def norm_weight(rng, d: int):
    """A norm's weight [d], far from 1."""
    return rng.uniform(d, low=0.2, high=3.5)


def layer(rng, config: Sizes = TINY) -> Layer:
    """One random layer."""
    d, f, q, kv = config.width, config.ffn_width, config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    return Layer(
        attn_norm=norm_weight(rng, d), q=matrix(rng, q, d), k=matrix(rng, kv, d), v=matrix(rng, kv, d), o=matrix(rng, d, q),
        mlp_norm=norm_weight(rng, d), gate=matrix(rng, f, d), up=matrix(rng, f, d), down=matrix(rng, d, f),
    )  # fmt: skip


def without(one: Layer, *names: str) -> Layer:
    """The layer with these weights all zero."""
    return replace(one, **{name: 0 * getattr(one, name) for name in names})


def model(rng, config: Sizes = TINY, n_layers: int | None = None) -> Model:
    """A random model; its head is a matrix of its own, also where the config ties it to the embedding."""
    layers = tuple(layer(rng, config) for _ in range(config.n_layers if n_layers is None else n_layers))
    return Model(rng.normal(config.vocab_size, config.width), layers, norm_weight(rng, config.width),
                 matrix(rng, config.vocab_size, config.width))


def tied(one: Model) -> Model:
    """The model with its table as its head, for probes in which the head is not the question."""
    return replace(one, head=one.embed)


def angles(rng, n: int, config: Sizes = TINY):
    """cos and sin [n, D/2] of random angles: only who uses what was given gets them right."""
    drawn = rng.uniform(n, config.head_dim // 2, low=-3.0, high=3.0)
    return drawn.cos(), drawn.sin()
