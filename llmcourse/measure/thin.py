"""A model with everything but weights: what a step of it takes is overhead."""

from __future__ import annotations

from dataclasses import replace

import torch

from llmcourse.model.llama import Llama
from llmcourse.model.weights import LayerWeights, Weights

SIZES = {"vocab_size": 64, "width": 64, "ffn_width": 64, "head_dim": 16, "tied": True}  # multiples of a vector register


def thin(model: Llama) -> Llama:
    """As many layers, heads, operator calls and waits in a step as `model` has, and about a hundredth of its bytes.

    What remains of a step's time when there is hardly anything left to read or to compute is neither waiting for memory
    nor for arithmetic: it is the cost of starting each operation, and of the program between them.
    """
    config = replace(model.config, name=f"thin {model.name}", qkv_bias=False, o_bias=False, qk_norm=False, bos_id=None,
                     eos_ids=(), **SIZES)
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).mul(shape[-1] ** -0.5).to(model.device, model.dtype)

    d, f, ones = config.width, config.ffn_width, torch.ones(config.width, device=model.device, dtype=model.dtype)
    q, kv = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    layers = [
        LayerWeights(attn_norm=ones, q=draw(q, d), k=draw(kv, d), v=draw(kv, d), o=draw(d, q), mlp_norm=ones,
                     gate=draw(f, d), up=draw(f, d), down=draw(d, f))
        for _ in range(config.n_layers)
    ]  # fmt: skip
    embed = draw(config.vocab_size, d)
    return Llama(config, Weights(embed=embed, layers=layers, norm=ones, head=embed))
