"""A tiny Llama with random weights, odd and all-different sizes, and settings that no default matches."""

from __future__ import annotations

import torch

from llmcourse.model.config import ModelConfig
from llmcourse.model.llama import Llama
from llmcourse.model.weights import LayerWeights, Weights

TINY = ModelConfig(
    name="tiny", vocab_size=97, width=30, n_layers=3, n_heads=6, n_kv_heads=2, head_dim=10, ffn_width=46, context=64,
    rms_eps=3e-4, rope_theta=700.0, tied=True, eos_ids=(),
)  # fmt: skip


def random_model(seed: int = 0, dtype: torch.dtype = torch.float64, config: ModelConfig = TINY) -> Llama:
    """Weights large enough that the next token depends on the whole context, so that greedy output does not repeat."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int, scale: float) -> torch.Tensor:
        return (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).to(dtype)

    def matrix(out: int, into: int) -> torch.Tensor:
        return draw(out, into, scale=1.6 * into**-0.5)

    c = config
    layers = [
        LayerWeights(
            attn_norm=1 + draw(c.width, scale=0.2), mlp_norm=1 + draw(c.width, scale=0.2),
            q=matrix(c.n_heads * c.head_dim, c.width), k=matrix(c.n_kv_heads * c.head_dim, c.width),
            v=matrix(c.n_kv_heads * c.value_dim, c.width), o=matrix(c.width, c.n_heads * c.value_dim),
            gate=matrix(c.ffn_width, c.width), up=matrix(c.ffn_width, c.width), down=matrix(c.width, c.ffn_width),
        )
        for _ in range(c.n_layers)
    ]  # fmt: skip
    embed = draw(c.vocab_size, c.width, scale=1.0)
    head = embed if c.tied else matrix(c.vocab_size, c.width)
    return Llama(c, Weights(embed=embed, layers=layers, norm=1 + draw(c.width, scale=0.2), head=head))
