"""Weights as a GGUF file holds them: the bits of each linear weight, never expanded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from llmcourse.errors import UnsupportedModel
from llmcourse.model.gguf import INTERLEAVED, open_gguf, unpermute
from llmcourse.model.gguf_meta import hf_config
from llmcourse.ops.numba.weights import PACK, Rows, Source

_NAMES = {
    "q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down",
    "attn_norm": "attn_norm", "mlp_norm": "ffn_norm", "q_norm": "attn_q_norm", "k_norm": "attn_k_norm",
}  # fmt: skip
_OUTSIDE = {"embed": "token_embd", "head": "output", "norm": "output_norm"}


def from_gguf(file: Path) -> Source:
    """The tensors of a file. Raises UnknownModel for a file that is no GGUF; `linear` raises UnsupportedModel for a kind of
    number that no kernel reads."""
    reader = open_gguf(file)
    config = hf_config(reader, file.name)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    heads = {"q": config["num_attention_heads"], "k": config["num_key_value_heads"]}
    if config["model_type"] not in INTERLEAVED:
        heads = {}

    def place(layer: int | None, name: str) -> str:
        if name.endswith("_bias"):
            return f"blk.{layer}.{_NAMES[name.removesuffix('_bias')]}.bias"
        return f"{_OUTSIDE[name]}.weight" if layer is None else f"blk.{layer}.{_NAMES[name]}.weight"

    def linear(layer: int | None, name: str) -> Rows:
        if name == "head" and "output.weight" not in tensors:
            name = "embed"
        tensor = tensors[place(layer, name)]
        kind = tensor.tensor_type.name
        if kind not in PACK:
            raise UnsupportedModel(f"{file.name}: {tensor.name} is stored as {kind}; the kernels read {', '.join(PACK)}")
        raw = np.asarray(tensor.data)
        if kind == "F16":
            raw = raw.view(np.uint16)
        elif kind == "BF16":
            raw = raw.view(np.int16)
        return Rows(kind, unpermute(raw, heads[name]) if name in heads else raw)

    def vector(layer: int | None, name: str) -> np.ndarray | None:
        tensor = tensors.get(place(layer, name))
        if tensor is None:
            return None
        values = np.asarray(tensor.data).astype(np.float32)
        part = name.removesuffix("_bias")
        return unpermute(values, heads[part]) if name.endswith("_bias") and part in heads else values

    return Source(linear, vector)
