"""Where a model's parameters are, and where the work of one token goes: by part of the model, from its config alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmcourse.model.config import ModelConfig

TABLE, ATTENTION, PAST, FEED_FORWARD, NORMS, HEAD = (
    "embedding table", "attention's matrices", "looking back", "feed-forward", "norms", "output head"
)  # fmt: skip


def parameters_by_part(config: ModelConfig) -> dict[str, int]:
    """Parameters of each part; they add up to `config.n_params`. A tied head is counted with the table, so it has none."""
    d, q, kv = config.width, config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    biases = (q + 2 * kv) * config.qkv_bias + d * config.o_bias
    return {
        TABLE: config.vocab_size * d,
        ATTENTION: config.n_layers * (d * (2 * q + 2 * kv) + biases),
        FEED_FORWARD: config.n_layers * 3 * d * config.ffn_width,
        NORMS: config.n_layers * (2 * d + 2 * config.head_dim * config.qk_norm) + d,
        HEAD: 0 if config.tied else config.vocab_size * d,
    }


def token_flops_by_part(config: ModelConfig, n_past: int) -> dict[str, int]:
    """Floating point operations of one more token (n = 1) after `n_past` others; they add up to `roofline.forward_flops`.

    The table is looked up, not multiplied with, and norms are left out. `PAST` is what grows with the text: the scores
    over all keys, and the weighted sum of all values.
    """
    d, q, kv = config.width, config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    return {
        ATTENTION: config.n_layers * 2 * d * (2 * q + 2 * kv),
        PAST: config.n_layers * 2 * 2 * q * (n_past + 1),
        FEED_FORWARD: config.n_layers * 2 * 3 * d * config.ffn_width,
        HEAD: 2 * config.vocab_size * d,
    }
