"""GGUF files (llama.cpp's format) turned once into a Hugging Face style folder that loads quickly ever after.

Source of the format: the GGUF specification of the ggml project, and its Python package `gguf`, which reads it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from llmcourse.errors import UnknownModel, UnsupportedModel
from llmcourse.model.config import ModelConfig
from llmcourse.model.gguf_tokenizer import tokenizer_files

# Llama files hold q and k rows in the order of interleaved rotary pairs; the other families keep their own order.
_ROWS_INTERLEAVED = {"llama": True, "qwen2": False, "qwen3": False}
_LAYER = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
_OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_ALIGN = 64  # bytes; tensors that begin on a cache line


def convert_gguf(file: Path, folder: Path, progress: Callable[[int], object] | None = None) -> Path:
    """Write `folder` (config, generation config, tokenizer, chat template, float32 safetensors) from one GGUF file.

    `progress` is called with the bytes of each tensor written. The folder appears whole or not at all: it is built
    beside its place and renamed, and if another process finished first, that one's folder is kept. Returns `folder`.
    Raises UnknownModel for a file that is no GGUF, UnsupportedModel for an architecture, tokenizer or number format
    that cannot be converted exactly, OSError when the disk is full.
    """
    file, folder = Path(file), Path(folder)
    reader = _open(file)
    fields = {name: field for name, field in reader.fields.items()}
    hf_config = _config(fields, reader.tensors, file)
    ModelConfig.from_hf(hf_config, file.stem)  # refuses what the engine cannot run, before the long part
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        for name, content in {"config.json": hf_config, **tokenizer_files(fields, file)}.items():
            (temporary / name).write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
        _write_tensors(temporary / "model.safetensors", reader.tensors, hf_config, file, progress)
        try:
            os.replace(temporary, folder)
        except OSError:
            if not (folder / "config.json").is_file():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def unpermute(rows: np.ndarray, n_heads: int) -> np.ndarray:
    """Undo llama.cpp's row order of q and k: [n_heads*D, …] with pairs (0, D/2), (1, D/2+1), … side by side in each
    head → the half-split order of the Hugging Face weights. The values are only moved."""
    pairs = rows.reshape(n_heads, rows.shape[0] // n_heads // 2, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def n_bytes_converted(file: Path) -> int:
    """Size in bytes of the float32 weights that `convert_gguf` would write for this file."""
    return sum(4 * int(tensor.n_elements) for tensor in _open(Path(file)).tensors)


def _open(file: Path):
    from gguf import GGUFReader

    try:
        return GGUFReader(file)
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise UnknownModel(f"{file} cannot be read as a GGUF file ({error}); fetch it again") from error


def _config(fields: dict[str, Any], tensors: list[Any], file: Path) -> dict[str, Any]:
    """The GGUF's metadata as the `config.json` that Hugging Face would write for the same model."""
    arch = fields["general.architecture"].contents()
    if arch not in _ROWS_INTERLEAVED:
        raise UnsupportedModel(
            f"{file.name} is a GGUF of architecture {arch!r}; those that can be converted: {', '.join(_ROWS_INTERLEAVED)}"
        )

    def get(key: str, default: Any = None) -> Any:
        field = fields.get(f"{arch}.{key}")
        return default if field is None else field.contents()

    names = {tensor.name for tensor in tensors}
    embedding = next(tensor for tensor in tensors if tensor.name == "token_embd.weight")
    heads, width = get("attention.head_count"), get("embedding_length")
    head_dim = get("attention.key_length", width // heads)
    if get("expert_count", 0) or get("rope.dimension_count", head_dim) != head_dim:
        raise UnsupportedModel(f"{file.name} uses experts or a partial rotary embedding, which the engine does not run")

    def token(which: str) -> int | None:
        field = fields.get(f"tokenizer.ggml.{which}_token_id")
        return None if field is None else field.contents()

    return {
        "architectures": [{"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}[arch]],
        "model_type": arch,
        "vocab_size": int(embedding.shape[1]),
        "hidden_size": width,
        "intermediate_size": get("feed_forward_length"),
        "num_hidden_layers": get("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": get("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "max_position_embeddings": get("context_length"),
        "rms_norm_eps": _shortest(get("attention.layer_norm_rms_epsilon")),
        "rope_theta": _shortest(get("rope.freq_base", 10000.0)),
        "rope_scaling": _rope_scaling(get, names, file),
        "hidden_act": "silu",
        "attention_bias": arch != "qwen2" and "blk.0.attn_q.bias" in names,
        "mlp_bias": False,
        "tie_word_embeddings": "output.weight" not in names,
        "bos_token_id": token("bos"),
        "eos_token_id": token("eos"),
        "torch_dtype": "float32",
    }


def _shortest(value: float) -> float:
    """The shortest decimal that is the same float32: GGUF stores 1e-5 as 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def _rope_scaling(get: Callable[..., Any], names: set[str], file: Path) -> dict[str, Any] | None:
    if "rope_freqs.weight" in names:
        raise UnsupportedModel(
            f"{file.name} stores its rotary scaling as a table of factors (rope_freqs), whose parameters a GGUF does "
            "not keep; use the model's safetensors folder instead"
        )
    kind = get("rope.scaling.type", "none")
    if kind == "none":
        return None
    if kind == "linear":
        return {"rope_type": "linear", "factor": get("rope.scaling.factor")}
    raise UnsupportedModel(f"{file.name} uses rotary scaling {kind!r}; the engine has none, linear and llama3")


def _hf_name(name: str, file: Path) -> str:
    """`blk.3.attn_q.weight` → `model.layers.3.self_attn.q_proj.weight`; UnsupportedModel names any other tensor."""
    stem, _, kind = name.rpartition(".")
    if stem in _OUTSIDE:
        return f"{_OUTSIDE[stem]}.{kind}"
    parts = stem.split(".")
    if len(parts) == 3 and parts[0] == "blk" and parts[2] in _LAYER:
        return f"model.layers.{parts[1]}.{_LAYER[parts[2]]}.{kind}"
    raise UnsupportedModel(f"{file.name} has a tensor {name!r}, which belongs to no model that the engine runs")


def _write_tensors(
    path: Path, tensors: list[Any], config: dict[str, Any], file: Path, progress: Callable[[int], object] | None
) -> None:
    """Write float32 safetensors one tensor at a time (so memory holds one), each beginning on a cache line.

    Format: 8 bytes little-endian header length, JSON header, then the tensors' bytes without gaps.
    """
    from gguf import dequantize

    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    tensors = sorted(tensors, key=lambda tensor: tensor.n_elements * 4 % _ALIGN != 0)  # odd sizes go last
    for tensor in tensors:
        size = 4 * int(tensor.n_elements)
        shape = [int(n) for n in reversed(tensor.shape)]
        header[_hf_name(tensor.name, file)] = {
            "dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]
        }  # fmt: skip
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGN)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors:
            try:
                values = dequantize(tensor.data, tensor.tensor_type)
            except NotImplementedError as error:
                raise UnsupportedModel(
                    f"{file.name}: tensor {tensor.name} is {tensor.tensor_type.name}, which the gguf library cannot expand"
                ) from error
            part = tensor.name.split(".")[-2]
            if _ROWS_INTERLEAVED[config["model_type"]] and part in heads:
                values = unpermute(values, heads[part])
            out.write(np.ascontiguousarray(values, dtype="<f4").data)
            if progress is not None:
                progress(values.nbytes)
