"""The metadata of a GGUF file, as the config and tokenizer files that Hugging Face keeps beside a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from llmcourse.errors import UnsupportedModel
from llmcourse.model.tokenizer_files import PRE_TOKENIZERS, tokenizer_json

_CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
_REQUIRED = (
    "embedding_length", "feed_forward_length", "block_count", "attention.head_count", "context_length",
    "attention.layer_norm_rms_epsilon",
)  # fmt: skip
_CONTROL, _USER_DEFINED = 3, 4  # token types of the GGUF specification
_LLAMA3_BANDS = dict(low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)


def hf_config(reader: Any, file_name: str) -> dict[str, Any]:
    """The content of `config.json` for an opened GGUF; UnsupportedModel names what the engine does not run."""
    arch = _getter(reader, "general")("architecture")
    if arch not in _CLASSES:
        raise UnsupportedModel(
            f"{file_name} is a GGUF of architecture {arch!r}; those that can be converted: {', '.join(_CLASSES)}"
        )
    get = _getter(reader, arch)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    missing = [f"{arch}.{key}" for key in _REQUIRED if get(key) is None]
    missing += ["token_embd.weight"] * ("token_embd.weight" not in tensors)
    if missing:
        raise UnsupportedModel(f"{file_name} lacks {', '.join(missing)}; it holds no whole model")
    heads, width = get("attention.head_count"), get("embedding_length")
    head_dim = get("attention.key_length", width // heads if isinstance(heads, int) else None)
    refused = {
        "experts": get("expert_count", 0) > 0,
        "heads that differ from layer to layer": not isinstance(heads, int),
        "a partial rotary embedding": get("rope.dimension_count", head_dim) != head_dim,
        "values of another size than keys": get("attention.value_length", head_dim) != head_dim,
        "several files (a split GGUF)": _getter(reader, "split")("count", 1) > 1,
    }
    for feature, present in refused.items():
        if present:
            raise UnsupportedModel(f"{file_name} uses {feature}, which this converter does not handle")
    token = _getter(reader, "tokenizer.ggml")
    theta = _shortest(get("rope.freq_base", 10_000.0))
    return {
        "architectures": [_CLASSES[arch]],
        "model_type": arch,
        "vocab_size": int(tensors["token_embd.weight"].shape[1]),
        "hidden_size": width,
        "intermediate_size": get("feed_forward_length"),
        "num_hidden_layers": get("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": get("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "max_position_embeddings": get("context_length"),
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


def tokenizer_files(reader: Any, file_name: str) -> dict[str, dict[str, Any]]:
    """File name → content of `tokenizer.json`, `tokenizer_config.json` (with the chat template) and
    `generation_config.json`. UnsupportedModel for all but byte-level BPE with a pre-tokenizer known by name."""
    get = _getter(reader, "tokenizer.ggml")
    kind, pre = get("model"), get("pre", "default")
    if kind != "gpt2" or pre not in PRE_TOKENIZERS:
        raise UnsupportedModel(
            f"{file_name} has a tokenizer of kind {kind!r} with pre-tokenizer {pre!r}; byte-level BPE ('gpt2') with "
            f"{', '.join(PRE_TOKENIZERS)} can be converted"
        )
    tokens = get("tokens")
    types = get("token_type", [1] * len(tokens))
    ids = {name: get(f"{name}_token_id") for name in ("bos", "eos", "eot", "unknown", "padding")}
    names = {name: None if i is None else tokens[i] for name, i in ids.items()}
    begin = names["bos"] if get("add_bos_token", False) else None
    tokenizer = tokenizer_json(
        vocab={token: i for i, token in enumerate(tokens)},
        merges=get("merges"),
        special={tokens[i]: i for i, kind in enumerate(types) if kind == _CONTROL},
        user_defined={tokens[i]: i for i, kind in enumerate(types) if kind == _USER_DEFINED},
        pre=pre,
        begin=begin,
    )
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": names["bos"],
        "eos_token": names["eos"],
        "unk_token": names["unknown"],
        "pad_token": names["padding"],
        "add_bos_token": begin is not None,
        "clean_up_tokenization_spaces": False,
        "chat_template": _getter(reader, "tokenizer")("chat_template"),
    }
    ends = [ids[name] for name in ("eos", "eot") if ids[name] is not None]
    generation = {"bos_token_id": ids["bos"], "eos_token_id": list(dict.fromkeys(ends)), "pad_token_id": ids["padding"]}
    return {
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": {key: value for key, value in settings.items() if value is not None},
        "generation_config.json": {key: value for key, value in generation.items() if value is not None},
    }


def _getter(reader: Any, prefix: str) -> Callable[..., Any]:
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
    if table is not None:
        divisors = np.asarray(table.data, dtype=np.float64)
        scaling = {"rope_type": "llama3", "factor": _shortest(divisors.max()), **_LLAMA3_BANDS}
        if np.allclose(divisors, _llama3_divisors(scaling, theta, head_dim), rtol=1e-5):
            return scaling
        raise UnsupportedModel(
            f"{file_name} stretches its rotary frequencies by a table (rope_freqs) that is not Llama 3's; use the "
            "model's safetensors folder instead"
        )
    kind = get("rope.scaling.type", "none")
    if kind == "none":
        return None
    if kind == "linear":
        return {"rope_type": "linear", "factor": _shortest(get("rope.scaling.factor"))}
    raise UnsupportedModel(f"{file_name} uses rotary scaling {kind!r}; the engine has none, linear and llama3")


def _llama3_divisors(scaling: dict[str, Any], theta: float, head_dim: int) -> np.ndarray:
    """Llama 3's divisor of each rotary frequency, [D/2]: 1 for short waves, `factor` for long ones, blended between."""
    wavelength = 2 * math.pi * theta ** (np.arange(0, head_dim, 2) / head_dim)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] / wavelength  # rotations over the original context
    keep = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return 1.0 / ((1.0 - keep) / scaling["factor"] + keep)
