"""The numbers of a model: read from safetensors, strictly, straight into the dtype and device they are used in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from llmcourse.errors import OutOfMemory, UnknownModel, UnsupportedModel, WeightMismatch
from llmcourse.model.config import ModelConfig

_ROTARY_BUFFER = re.compile(r"model\.(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq")  # saved by transformers < 4.32
_OOM_SIGNS = ("out of memory", "can't allocate memory", "not enough memory")


@dataclass
class LayerWeights:
    """One transformer block. Linear weights are [out, in]; what the model does not have is None."""

    attn_norm: Tensor  # [d]
    q: Tensor  # [Hq*D, d]
    k: Tensor  # [Hkv*D, d]
    v: Tensor  # [Hkv*D, d]
    o: Tensor  # [d, Hq*D]
    mlp_norm: Tensor  # [d]
    gate: Tensor  # [f, d]
    up: Tensor  # [f, d]
    down: Tensor  # [d, f]
    q_bias: Tensor | None = None  # [Hq*D]
    k_bias: Tensor | None = None  # [Hkv*D]
    v_bias: Tensor | None = None  # [Hkv*D]
    o_bias: Tensor | None = None  # [d]
    q_norm: Tensor | None = None  # [D]
    k_norm: Tensor | None = None  # [D]


@dataclass
class Weights:
    """All tensors of a model. `head` is the same object as `embed` when the config ties them."""

    embed: Tensor  # [V, d]
    layers: list[LayerWeights]
    norm: Tensor  # [d]
    head: Tensor  # [V, d]


def load_weights(folder: Path, config: ModelConfig, dtype: torch.dtype, device: torch.device | str) -> Weights:
    """Read `model.safetensors`, or the shards of `model.safetensors.index.json`, from a Hugging Face style folder.

    Tensors are converted one by one, so at most one of them exists twice; float32 on the CPU stays mapped from the
    file. Raises WeightMismatch naming every missing, unexpected and wrongly shaped tensor, UnknownModel when the
    folder has no weights, OutOfMemory with the bytes that the model needs.
    """
    files = _open_all(Path(folder))
    where = {name: file for file in files for name in file.keys()}
    wanted = tensor_shapes(config)
    _check(folder, config, wanted, where)
    head_name = "lm_head.weight"
    n_bytes = config.n_params * dtype.itemsize
    with explain_oom(f"the weights of {config.name} in {str(dtype).removeprefix('torch.')}", n_bytes, device):
        got = {name: where[name].get_tensor(name).to(device=device, dtype=dtype) for name in wanted}
    if config.tied and head_name in where:
        embed = where["model.embed_tokens.weight"].get_tensor("model.embed_tokens.weight")
        if not torch.equal(embed, where[head_name].get_tensor(head_name).to(embed.dtype)):
            raise WeightMismatch(
                f"{folder}: the config ties the output head to the embedding, but {head_name} holds other values; "
                "set tie_word_embeddings to false in config.json if the head is meant to be separate"
            )
    embed = got["model.embed_tokens.weight"]
    layers = [
        LayerWeights(**{field: got[name] for field, name, _ in _layer_tensors(config, i)})
        for i in range(config.n_layers)
    ]
    return Weights(embed, layers, got["model.norm.weight"], embed if config.tied else got[head_name])


def tensor_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Hugging Face name → shape of every tensor that a model of this config stores (no `lm_head` when tied)."""
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config.vocab_size, config.width)}
    for i in range(config.n_layers):
        shapes.update({name: shape for _, name, shape in _layer_tensors(config, i)})
    shapes["model.norm.weight"] = (config.width,)
    if not config.tied:
        shapes["lm_head.weight"] = (config.vocab_size, config.width)
    return shapes


@contextmanager
def explain_oom(what: str, n_bytes: int, device: torch.device | str) -> Iterator[None]:
    """Turn any allocator's failure inside the block into OutOfMemory: what was asked for, how many bytes, way out."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        known = isinstance(error, (torch.OutOfMemoryError, MemoryError))
        if not known and not any(sign in str(error) for sign in _OOM_SIGNS):
            raise
        raise OutOfMemory(
            f"{what} need {n_bytes:,} bytes ({n_bytes / 1e9:.2f} GB) on {device}, which has not that much free; "
            "choose a smaller model, a smaller dtype (dtype='bfloat16') or another device, or close what else uses it"
        ) from error


def _layer_tensors(config: ModelConfig, i: int) -> list[tuple[str, str, tuple[int, ...]]]:
    """(field of LayerWeights, Hugging Face name, shape) of every tensor of layer i."""
    d, f, head = config.width, config.ffn_width, config.head_dim
    q, kv = config.n_heads * head, config.n_kv_heads * head
    rows: list[tuple[str, str, tuple[int, ...]]] = [
        ("attn_norm", "input_layernorm.weight", (d,)),
        ("q", "self_attn.q_proj.weight", (q, d)),
        ("k", "self_attn.k_proj.weight", (kv, d)),
        ("v", "self_attn.v_proj.weight", (kv, d)),
        ("o", "self_attn.o_proj.weight", (d, q)),
        ("mlp_norm", "post_attention_layernorm.weight", (d,)),
        ("gate", "mlp.gate_proj.weight", (f, d)),
        ("up", "mlp.up_proj.weight", (f, d)),
        ("down", "mlp.down_proj.weight", (d, f)),
    ]
    if config.qkv_bias:
        rows += [(f"{x}_bias", f"self_attn.{x}_proj.bias", (n,)) for x, n in (("q", q), ("k", kv), ("v", kv))]
    if config.o_bias:
        rows.append(("o_bias", "self_attn.o_proj.bias", (d,)))
    if config.qk_norm:
        rows += [(f"{x}_norm", f"self_attn.{x}_norm.weight", (head,)) for x in "qk"]
    return [(field, f"model.layers.{i}.{name}", shape) for field, name, shape in rows]


def _open_all(folder: Path) -> list[safe_open]:
    """Open the folder's weight files (lazily: only their headers are read)."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        paths = [folder / name for name in sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))]
    else:
        paths = [folder / "model.safetensors"]
    absent = [path.name for path in paths if not path.is_file()]
    if absent and any(folder.glob("pytorch_model*.bin")):
        raise UnsupportedModel(
            f"{folder} has its weights only as pickles (pytorch_model*.bin), which can run code when opened and are "
            "not loaded; save the model again as safetensors"
        )
    if absent:
        raise UnknownModel(f"{folder} lacks weight files: {', '.join(absent)}; fetch the model again")
    files = []
    for path in paths:
        try:
            files.append(safe_open(path, framework="pt", device="cpu"))
        except (SafetensorError, OSError) as error:
            raise WeightMismatch(f"{path} is not a whole safetensors file ({error}); fetch it again") from error
    return files


def _check(folder: Path, config: ModelConfig, wanted: dict[str, tuple[int, ...]], where: dict[str, safe_open]) -> None:
    """Compare names, shapes and number types with the config; WeightMismatch lists everything that differs."""
    missing = [name for name in wanted if name not in where]
    extra = [name for name in where if name not in wanted and not _ROTARY_BUFFER.fullmatch(name)]
    if config.tied:
        extra = [name for name in extra if name != "lm_head.weight"]
    wrong = []
    for name in wanted.keys() & where.keys():
        stored = where[name].get_slice(name)
        if tuple(stored.get_shape()) != wanted[name]:
            wrong.append(f"{name} is {list(stored.get_shape())}, config says {list(wanted[name])}")
        elif stored.get_dtype() not in ("F64", "F32", "F16", "BF16"):
            wrong.append(f"{name} is stored as {stored.get_dtype()}, not as floating point")
    problems = [("missing", missing), ("unexpected", extra), ("wrong", sorted(wrong))]
    lines = [f"{len(names)} {kind}: {'; '.join(names)}" for kind, names in problems if names]
    if lines:
        raise WeightMismatch(
            f"the weights in {folder} do not fit its config.json.\n  " + "\n  ".join(lines)
            + "\nConfig and weights must come from the same model; fetch the folder again if a download was cut short."
        )  # fmt: skip

