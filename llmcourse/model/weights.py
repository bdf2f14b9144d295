"""The numbers of a model: read from safetensors, strictly, straight into the dtype and device they are used in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from llmcourse.errors import OutOfMemory, UnknownModel, UnsupportedModel, WeightMismatch, is_no_memory
from llmcourse.model.config import ModelConfig, read_json

_ROTARY_BUFFER = re.compile(r"model\.(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq")  # saved by transformers < 4.32
_EMBED, _HEAD = "model.embed_tokens.weight", "lm_head.weight"


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
    """Read `model.safetensors`, or else the shards of `model.safetensors.index.json`, from a Hugging Face style folder.

    Tensors are converted one by one, so at most one of them exists twice; float32 on the CPU stays mapped from the
    file. Raises WeightMismatch naming every missing, unexpected and wrongly shaped tensor, UnknownModel when the
    folder has no weights, OutOfMemory with the bytes that the model needs.
    """
    stored = _stored_tensors(Path(folder))
    if config.tied and _EMBED not in stored and _HEAD in stored:
        stored[_EMBED] = stored.pop(_HEAD)  # tied: one tensor, stored under either name
    wanted = tensor_shapes(config)
    _check(folder, config, wanted, stored)
    n_bytes = config.n_params * dtype.itemsize
    with explain_oom(f"the weights of {config.name} in {str(dtype).removeprefix('torch.')}", n_bytes, device):
        got = {name: stored[name].read().to(device=device, dtype=dtype) for name in wanted}
    if config.tied and _HEAD in stored:
        embed = stored[_EMBED].read()
        if not torch.equal(embed, stored[_HEAD].read().to(embed.dtype)):
            raise WeightMismatch(
                f"{folder}: the config ties the output head to the embedding, but {_HEAD} holds other values; "
                "set tie_word_embeddings to false in config.json if the head is meant to be separate"
            )
    embed = got[_EMBED]
    layers = [
        LayerWeights(**{field: got[name] for field, name, _ in _layer_tensors(config, i)})
        for i in range(config.n_layers)
    ]
    return Weights(embed, layers, got["model.norm.weight"], embed if config.tied else got[_HEAD])


def tensor_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Hugging Face name → shape of every tensor that a model of this config stores (no `lm_head` when tied)."""
    shapes: dict[str, tuple[int, ...]] = {_EMBED: (config.vocab_size, config.width)}
    for i in range(config.n_layers):
        shapes.update({name: shape for _, name, shape in _layer_tensors(config, i)})
    shapes["model.norm.weight"] = (config.width,)
    if not config.tied:
        shapes[_HEAD] = (config.vocab_size, config.width)
    return shapes


@contextmanager
def explain_oom(what: str, n_bytes: int, device: torch.device | str) -> Iterator[None]:
    """Turn any allocator's failure inside the block into OutOfMemory: what was asked for, how many bytes, way out."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_no_memory(error):
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


@dataclass(frozen=True)
class _Stored:
    """One tensor in an opened weight file; nothing but the file's header has been read."""

    file: safe_open
    name: str

    def read(self) -> Tensor:
        """Its values, mapped from the file."""
        return self.file.get_tensor(self.name)

    def header(self) -> tuple[tuple[int, ...], str]:
        """Its shape and its number type as safetensors names it: "F32", "BF16", "F8_E4M3", …"""
        part = self.file.get_slice(self.name)
        return tuple(part.get_shape()), part.get_dtype()


def _stored_tensors(folder: Path) -> dict[str, _Stored]:
    """Every tensor of the folder's weight files by name: of the single file, or, where there is none, of the shards.

    A single file beside an index is the newer one: transformers reads it, and so do we.
    """
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    shard_of = _shard_of(index) if index.is_file() and not single.is_file() else None
    paths = [single] if shard_of is None else [folder / name for name in sorted(set(shard_of.values()))]
    absent = [path.name for path in paths if not path.is_file()]
    if absent and any(folder.glob("pytorch_model*.bin")):
        raise UnsupportedModel(
            f"{folder} has its weights only as pickles (pytorch_model*.bin), which can run code when opened and are "
            "not loaded; save the model again as safetensors"
        )
    if absent:
        raise UnknownModel(f"{folder} lacks weight files: {', '.join(absent)}; fetch the model again")
    files = {}
    for path in paths:
        try:
            files[path.name] = safe_open(path, framework="pt", device="cpu")
        except (SafetensorError, OSError) as error:
            raise WeightMismatch(f"{path} is not a whole safetensors file ({error}); fetch it again") from error
    names = {path: set(file.keys()) for path, file in files.items()}
    if shard_of is None:
        return {name: _Stored(files[single.name], name) for name in names[single.name]}
    return {name: _Stored(files[path], name) for name, path in shard_of.items() if name in names[path]}


def _shard_of(index: Path) -> dict[str, str]:
    """Tensor name → the file that holds it, as the index says."""
    table = read_json(index).get("weight_map")
    if not isinstance(table, dict) or not all(isinstance(name, str) and Path(name).name == name for name in table.values()):
        raise UnknownModel(f"{index} has no weight_map from tensors to files of this folder; fetch the model again")
    return table


def _check(folder: Path, config: ModelConfig, wanted: dict[str, tuple[int, ...]], stored: dict[str, _Stored]) -> None:
    """Compare names, shapes and number types with the config; WeightMismatch lists everything that differs."""
    headers = {name: tensor.header() for name, tensor in stored.items()}
    fp8 = sorted(name for name, (_, number) in headers.items() if number.startswith("F8"))
    if fp8:
        raise UnsupportedModel(
            f"the weights in {folder} are stored as fp8 ({fp8[0]} is {headers[fp8[0]][1]}), whose scales this engine does "
            "not read; take the bfloat16 version of the model"
        )
    missing = [name for name in wanted if name not in stored]
    extra = [name for name in stored if name not in wanted and not _ROTARY_BUFFER.fullmatch(name)]
    if config.tied:
        extra = [name for name in extra if name != _HEAD]
    wrong = []
    for name in wanted.keys() & stored.keys():
        shape, number = headers[name]
        if shape != wanted[name]:
            wrong.append(f"{name} is {list(shape)}, config says {list(wanted[name])}")
        elif number not in ("F64", "F32", "F16", "BF16"):
            wrong.append(f"{name} is stored as {number}, not as floating point")
    problems = [("missing", missing), ("unexpected", extra), ("wrong", sorted(wrong))]
    lines = [f"{len(names)} {kind}: {'; '.join(names)}" for kind, names in problems if names]
    if lines:
        raise WeightMismatch(
            f"the weights in {folder} do not fit its config.json.\n  " + "\n  ".join(lines)
            + "\nConfig and weights must come from the same model; fetch the folder again if a download was cut short."
        )  # fmt: skip

