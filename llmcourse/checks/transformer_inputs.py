"""What the probes of lab 04 feed a layer and a model with: tiny, random, all sizes different, no setting a default."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Config:
    """What `block` and `forward` read of a config, under the names of `llmcourse.model.config.ModelConfig`.

    (While a lab is graded the model's own modules are hidden from its answers, and from its probes.)
    """

    vocab_size: int
    width: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_width: int
    rms_eps: float
    rope_theta: float
    tied: bool


# Hq·D = 60 is not d, so a missing o projection cannot go unseen by shape; three query heads share a key/value head.
TINY = Config(
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


def matrix(rng, out: int, into: int):
    """A random weight [out, in]."""
    return GAIN * into**-0.5 * rng.normal(out, into)


def norm_weight(rng, d: int):
    """A norm's weight [d], far from 1."""
    return rng.uniform(d, low=0.2, high=3.5)


def layer(rng, config: Config = TINY) -> Layer:
    """One random layer."""
    d, f, q, kv = config.width, config.ffn_width, config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    return Layer(
        attn_norm=norm_weight(rng, d), q=matrix(rng, q, d), k=matrix(rng, kv, d), v=matrix(rng, kv, d), o=matrix(rng, d, q),
        mlp_norm=norm_weight(rng, d), gate=matrix(rng, f, d), up=matrix(rng, f, d), down=matrix(rng, d, f),
    )  # fmt: skip


def without(one: Layer, *names: str) -> Layer:
    """The layer with these weights all zero."""
    return replace(one, **{name: 0 * getattr(one, name) for name in names})


def model(rng, config: Config = TINY, n_layers: int | None = None) -> Model:
    """A random model; its head is a matrix of its own, also where the config ties it to the embedding."""
    layers = tuple(layer(rng, config) for _ in range(config.n_layers if n_layers is None else n_layers))
    return Model(rng.normal(config.vocab_size, config.width), layers, norm_weight(rng, config.width),
                 matrix(rng, config.vocab_size, config.width))


def tied(one: Model) -> Model:
    """The model with its table as its head, for probes in which the head is not the question."""
    return replace(one, head=one.embed)


def angles(rng, n: int, config: Config = TINY):
    """cos and sin [n, D/2] of random angles: only who uses what was given gets them right."""
    drawn = rng.uniform(n, config.head_dim // 2, low=-3.0, high=3.0)
    return drawn.cos(), drawn.sin()
