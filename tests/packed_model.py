"""Tiny models in packed formats, and the same weights as floats: what the compiled step is compared with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from gguf import GGMLQuantizationType, dequantize
from gguf.quants import quantize

from llmcourse.cache.pool import PoolCache
from llmcourse.model.config import ModelConfig
from llmcourse.model.llama import Llama
from llmcourse.ops.numba.prepared import CompiledStep
from llmcourse.ops.numba.weights import Rows, Source, as_rows, stack
from tests.random_model import random_model

# Widths multiples of 32, heads of 16 (a block of 32 holds two), a vocabulary that fills no last tile: 97 = 6 · 16 + 1.
SMALL = ModelConfig(
    name="small", vocab_size=97, width=64, n_layers=3, n_heads=6, n_kv_heads=2, head_dim=16, ffn_width=96, context=128,
    rms_eps=3e-4, rope_theta=700.0, tied=True, eos_ids=(),
)  # fmt: skip
HEADS_OF_48 = replace(SMALL, name="48", width=96, n_heads=4, n_kv_heads=2, head_dim=48, ffn_width=64, tied=False)
_LINEAR = ("q", "k", "v", "o", "gate", "up", "down")


def packed(config: ModelConfig, kind: str = "Q4_1", head: str = "Q8_0", seed: int = 0) -> tuple[Source, Llama]:
    """Random weights in a format, as the kernels read them; and a float32 model of exactly the values that they stand for."""
    model = random_model(seed, torch.float32, config)
    raw: dict[tuple[int | None, str], Rows] = {}

    def store(layer: int | None, name: str, values: torch.Tensor, kind: str) -> torch.Tensor:
        rows, exact = rounded_to(values, kind)
        raw[layer, name] = rows
        return exact

    for i, layer in enumerate(model.weights.layers):
        for name in _LINEAR:
            setattr(layer, name, store(i, name, getattr(layer, name), kind))
    model.weights.embed = store(None, "embed", model.weights.embed, head)
    if config.tied:
        model.weights.head, raw[None, "head"] = model.weights.embed, raw[None, "embed"]
    else:
        model.weights.head = store(None, "head", model.weights.head, head)

    def vector(layer: int | None, name: str) -> np.ndarray | None:
        values = getattr(model.weights if layer is None else model.weights.layers[layer], name)
        return None if values is None else values.numpy()

    return Source(lambda layer, name: raw[layer, name], vector), model


def rounded_to(values: torch.Tensor, kind: str) -> tuple[Rows, torch.Tensor]:
    """A matrix in a format, and the float32 values that it then has."""
    if kind in ("F32", "F16", "BF16"):
        number = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[kind]
        return as_rows(values.to(number)), values.to(number).float()
    name = GGMLQuantizationType[kind]
    raw = quantize(values.numpy(), name)
    return Rows(kind, raw), torch.from_numpy(dequantize(raw, name))


def compiled(config, source: Source, mode: str = "fine", threads: int = 2, dtype=torch.float32, n_tokens: int = 512):
    """A compiled step on those weights, and its pool."""
    weights, _ = stack(config, source)
    pool = PoolCache(config, dtype, n_tokens=n_tokens)
    return CompiledStep(config, weights, pool, mode, threads, config.context), pool
