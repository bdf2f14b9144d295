"""The metadata of a GGUF file, as the `config.json` that Hugging Face keeps beside a model.

What a missing or an old key means is taken from llama.cpp's loader.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from llmcourse.errors import UnsupportedModel

_CLASSES = {"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
ARCHITECTURES = ("llama", "qwen2", "qwen3")
_REQUIRED = (
    "embedding_length", "feed_forward_length", "block_count", "attention.head_count", "context_length",
    "attention.layer_norm_rms_epsilon",
)  # fmt: skip
# Settings that change the numbers; a file with one that is not here is refused. The others (names, sizes) are not read.
_ATTENTION = {"head_count", "head_count_kv", "key_length", "value_length", "layer_norm_rms_epsilon", "layer_norm_epsilon",
              "causal", "sliding_window"}
_ROPE = {"freq_base", "dimension_count", "scaling.type", "scaling.factor", "scaling.attn_factor", "scale_linear",
         "scaling.original_context_length", "scaling.finetuned"}
_NEUTRAL = {"scaling.attn_factor": 1.0, "causal": True}  # the only value that is no change
_LLAMA3_BANDS = dict(low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)


def hf_config(reader: Any, file_name: str) -> dict[str, Any]:
    """The content of `config.json` for an opened GGUF; UnsupportedModel names what the engine does not run."""
    arch = getter(reader, "general")("architecture")
    if arch not in ARCHITECTURES:
        raise UnsupportedModel(
            f"{file_name} is a GGUF of architecture {arch!r}; those that can be converted: {', '.join(ARCHITECTURES)}"
        )
    get = getter(reader, arch)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    missing = [f"{arch}.{key}" for key in _REQUIRED if get(key) is None]
    missing += ["token_embd.weight"] * ("token_embd.weight" not in tensors)
    if missing:
        raise UnsupportedModel(f"{file_name} lacks {', '.join(missing)}; it holds no whole model")
    _refuse_unknown(reader, arch, file_name)
    heads, width = get("attention.head_count"), get("embedding_length")
    head_dim = get("attention.key_length", width // heads if isinstance(heads, int) else None)
    refused = {
        "experts": get("expert_count", 0) > 0,
        "heads that differ from layer to layer": not isinstance(heads, int),
        "a partial rotary embedding": get("rope.dimension_count", head_dim) != head_dim,
        "values of another size than keys": get("attention.value_length", head_dim) != head_dim,
        "several files (a split GGUF)": getter(reader, "split")("count", 1) > 1,
    }
    context, window = get("context_length"), get("attention.sliding_window")
    windowed = window is not None and 0 < window < context
    refused["a sliding window in another architecture than llama"] = windowed and arch != "llama"
    refused["a sliding window and attention biases"] = windowed and "blk.0.attn_q.bias" in tensors
    for feature, present in refused.items():
        if present:
            raise UnsupportedModel(f"{file_name} uses {feature}, which this converter does not handle")
    family = "mistral" if windowed else arch  # Mistral's files are of architecture llama
    token = getter(reader, "tokenizer.ggml")
    theta = _shortest(get("rope.freq_base", 10_000.0))
    return {
        "architectures": [_CLASSES[family]],
        "model_type": family,
        "vocab_size": int(tensors["token_embd.weight"].shape[1]),
        "hidden_size": width,
        "intermediate_size": get("feed_forward_length"),
        "num_hidden_layers": get("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": get("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "max_position_embeddings": context,
        **({"sliding_window": window} if windowed else {}),
        "rms_norm_eps": _shortest(get("attention.layer_norm_rms_epsilon")),
        "rope_theta": theta,
        "rope_scaling": _rope_scaling(get, tensors.get("rope_freqs.weight"), theta, head_dim, file_name),
        "hidden_act": "silu",
        "attention_bias": arch != "qwen2" and "blk.0.attn_q.bias" in tensors,
        "mlp_bias": False,
        "tie_word_embeddings": "output.weight" not in tensors,
        "bos_token_id": token("bos_token_id"),
        "eos_token_id": token("eos_token_id"),
        "torch_dtype": "float32",
    }


def getter(reader: Any, prefix: str) -> Callable[..., Any]:
    """`get(key, default)` over the fields `prefix.key` of an opened GGUF."""

    def get(key: str, default: Any = None) -> Any:
        field = reader.fields.get(f"{prefix}.{key}")
        return default if field is None else field.contents()

    return get


def _shortest(value: float) -> float:
    """The shortest decimal that is the same float32: GGUF stores 1e-5 as 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def _rope_scaling(
    get: Callable[..., Any], table: Any, theta: float, head_dim: int, file_name: str
) -> dict[str, Any] | None:
    """`rope_scaling` as in `config.json`. Llama 3's is kept in a GGUF only as a table of one divisor per frequency:
    the parameters that all published Llama 3 models use are tried, and taken when they give the same table."""
    kind, factor = get("rope.scaling.type"), get("rope.scaling.factor", get("rope.scale_linear"))
    stretched = kind not in (None, "none", "linear") or (kind != "none" and factor not in (None, 0.0, 1.0))
    if table is not None:
        if stretched:
            raise UnsupportedModel(f"{file_name} stretches its rotary frequencies twice, by a table and by {kind or 'a factor'}")
        divisors = np.asarray(table.data, dtype=np.float64)
        scaling = {"rope_type": "llama3", "factor": _shortest(divisors.max()), **_LLAMA3_BANDS}
        if np.allclose(divisors, _llama3_divisors(scaling, theta, head_dim), rtol=1e-5):
            return scaling
        raise UnsupportedModel(
            f"{file_name} stretches its rotary frequencies by a table (rope_freqs) that is not Llama 3's; use the "
            "model's safetensors folder instead"
        )
    if kind not in (None, "none", "linear"):
        raise UnsupportedModel(f"{file_name} uses rotary scaling {kind!r}; the engine has none, linear and llama3")
    if kind == "linear" and factor is None:
        raise UnsupportedModel(f"{file_name} uses rotary scaling 'linear' and names no factor")
    # A factor without a type is linear: so were files of 2023, and so llama.cpp reads them.
    return {"rope_type": "linear", "factor": _shortest(factor)} if stretched else None


def _refuse_unknown(reader: Any, arch: str, file_name: str) -> None:
    """Raise UnsupportedModel for a setting of attention, rotation or scale that this converter does not know."""
    for key, field in reader.fields.items():
        room, _, name = key.removeprefix(f"{arch}.").partition(".")
        if not key.startswith(f"{arch}."):
            continue
        known = _ATTENTION if room == "attention" else _ROPE if room == "rope" else ()
        odd = room in ("attention", "rope") or "scale" in room or "softcap" in room
        if (odd and name not in known) or (name in _NEUTRAL and field.contents() != _NEUTRAL[name]):
            raise UnsupportedModel(f"{file_name} sets {key} to {field.contents()!r}, which this converter does not handle")


def _llama3_divisors(scaling: dict[str, Any], theta: float, head_dim: int) -> np.ndarray:
    """Llama 3's divisor of each rotary frequency, [D/2]: 1 for short waves, `factor` for long ones, blended between."""
    wavelength = 2 * math.pi * theta ** (np.arange(0, head_dim, 2) / head_dim)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] / wavelength  # rotations over the original context
    keep = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return 1.0 / ((1.0 - keep) / scaling["factor"] + keep)
