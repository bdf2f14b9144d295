"""Small random models of every supported kind, written by transformers itself: the outside oracle of loading and maths.

All sizes are odd where they may be, and all different; eps, theta, norms and biases are far from their defaults, so
that a swapped, forgotten or defaulted number changes the logits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

KINDS = (
    "llama", "llama-gqa", "llama-tied", "llama-bias", "llama3-rope", "linear-rope", "qwen2", "qwen3", "mistral",
)  # fmt: skip
_SIZES = dict(
    vocab_size=197, hidden_size=42, intermediate_size=74, num_hidden_layers=3, num_attention_heads=6,
    num_key_value_heads=2, head_dim=14, max_position_embeddings=8192, rms_norm_eps=3e-3, tie_word_embeddings=False,
    bos_token_id=1, eos_token_id=[2, 5], pad_token_id=None,
)  # fmt: skip
_THETA = 7_777.0
_LLAMA3 = dict(factor=6.0, low_freq_factor=1.25, high_freq_factor=5.0, original_max_position_embeddings=512)
_FAMILY = {"qwen2": "Qwen2", "qwen3": "Qwen3", "mistral": "Mistral"}
_CHANGES: dict[str, dict[str, Any]] = {
    "llama": dict(num_attention_heads=7, num_key_value_heads=7),
    "llama-tied": dict(tie_word_embeddings=True),
    "llama-bias": dict(attention_bias=True),
    "qwen2": dict(hidden_size=84, head_dim=None),  # its heads always share the width: 84 = 6 heads of 14
    "qwen3": dict(attention_bias=False),
    "mistral": dict(sliding_window=None),
}
_SCALING = {"llama3-rope": {"rope_type": "llama3", **_LLAMA3}, "linear-rope": {"rope_type": "linear", "factor": 3.5}}


def tiny_config(kind: str, **overrides: Any) -> transformers.PretrainedConfig:
    """The transformers config of one kind, in the spelling of the installed transformers (4 or 5)."""
    sizes = {**_SIZES, **_CHANGES.get(kind, {}), **overrides}
    if sizes["head_dim"] is None:
        del sizes["head_dim"]
    scaling = _SCALING.get(kind)
    if int(transformers.__version__.split(".")[0]) >= 5:
        sizes.setdefault("rope_parameters", {"rope_theta": _THETA, **(scaling or {"rope_type": "default"})})
    else:
        sizes.setdefault("rope_theta", _THETA)
        sizes.setdefault("rope_scaling", scaling)
    return getattr(transformers, f"{_FAMILY.get(kind, 'Llama')}Config")(**sizes)


def write_tiny(folder: Path, kind: str, seed: int = 0, **overrides: Any) -> transformers.PreTrainedModel:
    """Write a model of `kind` (one of KINDS) with random weights into `folder`; return the same model, in eval mode.

    `overrides` replace config values, e.g. `num_hidden_layers=1`. The weights depend on nothing but the seed.
    """
    config = tiny_config(kind, **overrides)
    model = getattr(transformers, f"{_FAMILY.get(kind, 'Llama')}ForCausalLM")(config).eval().float()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, values in model.named_parameters():
            noise = torch.randn(values.shape, generator=generator)
            if name.endswith(".bias"):
                values.copy_(0.1 * noise)
            elif values.ndim == 1:
                values.copy_(1 + 0.3 * noise)  # norms
            else:
                gain = 0.5 if name.startswith("lm_head") else 1.0
                values.copy_(gain * noise * values.shape[1] ** -0.5)
    model.save_pretrained(folder)
    return model
