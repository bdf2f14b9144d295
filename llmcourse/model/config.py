"""What a Llama-family model looks like: sizes, rotary settings and special ids, read from its `config.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmcourse.errors import UnknownModel, UnsupportedModel

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
_REQUIRED = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "max_position_embeddings",
)  # fmt: skip
_SCALING_KEYS = {
    "linear": {"factor": float},
    "llama3": {
        "factor": float, "low_freq_factor": float, "high_freq_factor": float, "original_max_position_embeddings": int
    },
}  # fmt: skip


@dataclass(frozen=True)
class RopeScaling:
    """How rotary frequencies are stretched for long contexts.

    `kind` is "linear" (every frequency divided by `factor`) or "llama3" (only wavelengths above
    `original_context / low_freq_factor` are divided, those below `original_context / high_freq_factor` stay,
    the band between is blended). Source: transformers `modeling_rope_utils`, Llama 3.1 model card.
    """

    kind: str
    factor: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_context: int = 8192


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and settings of one model. Letters: d width, L layers, Hq/Hkv heads, D head size, f feed-forward, V."""

    name: str
    vocab_size: int
    width: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_width: int
    context: int
    rms_eps: float = 1e-6
    rope_theta: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    tied: bool = False
    qkv_bias: bool = False
    o_bias: bool = False
    qk_norm: bool = False
    bos_id: int | None = None
    eos_ids: tuple[int, ...] = ()
    windows: tuple[int | None, ...] | None = None
    v_head_dim: int | None = None

    @property
    def value_dim(self) -> int:
        """Head size of the values: that of the keys unless the model says otherwise."""
        return self.v_head_dim or self.head_dim

    @classmethod
    def from_hf(cls, hf: Mapping[str, Any], name: str = "model") -> ModelConfig:
        """Read a Hugging Face config (the parsed `config.json`), in transformers 4 or 5 spelling.

        Raises UnsupportedModel, naming the model and the feature, for every family or setting that the engine
        does not compute exactly.
        """
        family = hf.get("model_type")
        if family not in FAMILIES:
            raise _unsupported(name, f"model_type {family!r}")
        missing = [key for key in _REQUIRED if hf.get(key) is None]
        if missing:
            raise _unsupported(name, f"a config without {', '.join(missing)}")
        _refuse_features(hf, family, name)
        heads, width = hf["num_attention_heads"], hf["hidden_size"]
        theta, scaling = _rope(hf, name)
        biased = family == "qwen2" or bool(hf.get("attention_bias"))
        config = cls(
            name=name,
            vocab_size=hf["vocab_size"],
            width=width,
            n_layers=hf["num_hidden_layers"],
            n_heads=heads,
            n_kv_heads=hf.get("num_key_value_heads") or heads,
            head_dim=hf.get("head_dim") or width // heads,
            ffn_width=hf["intermediate_size"],
            context=hf["max_position_embeddings"],
            rms_eps=hf.get("rms_norm_eps", cls.rms_eps),
            rope_theta=theta,
            rope_scaling=scaling,
            tied=bool(hf.get("tie_word_embeddings", False)),
            qkv_bias=biased,
            o_bias=biased and family != "qwen2",
            qk_norm=family == "qwen3",
            bos_id=hf.get("bos_token_id"),
            eos_ids=as_ids(hf.get("eos_token_id")),
        )
        if config.n_heads % config.n_kv_heads:
            raise _unsupported(name, f"{config.n_heads} query heads over {config.n_kv_heads} key/value heads")
        if config.head_dim % 2:
            raise _unsupported(name, f"rotary embedding over an odd head size ({config.head_dim})")
        return config

    @property
    def n_params(self) -> int:
        """Number of parameters; a tied output head is counted once, with the embedding."""
        d, q, kv = self.width, self.n_heads * self.head_dim, self.n_kv_heads * self.head_dim
        layer = d * (2 * q + 2 * kv) + 3 * d * self.ffn_width + 2 * d
        layer += (q + 2 * kv) * self.qkv_bias + d * self.o_bias + 2 * self.head_dim * self.qk_norm
        return self.vocab_size * d * (1 if self.tied else 2) + self.n_layers * layer + d


def load_config(folder: Path, name: str | None = None) -> ModelConfig:
    """Read `config.json` of a Hugging Face style folder, with the EOS ids of `generation_config.json` added.

    Chat models often end a turn with an id that only the generation config lists. `name` defaults to the folder's.
    Raises UnknownModel when there is no readable config, UnsupportedModel as `ModelConfig.from_hf` does.
    """
    hf = read_json(folder / "config.json")
    config = dict(hf)
    generation = folder / "generation_config.json"
    if generation.is_file():
        extra = as_ids(read_json(generation).get("eos_token_id"))
        config["eos_token_id"] = list(dict.fromkeys([*as_ids(hf.get("eos_token_id")), *extra]))
    return ModelConfig.from_hf(config, name or folder.name)


def read_json(path: Path) -> dict[str, Any]:
    """Parse one JSON file of a model folder; UnknownModel names the file if it is missing or broken."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnknownModel(
            f"{path.parent} is not a model folder: it has no {path.name}. A model folder holds config.json, "
            "tokenizer.json and *.safetensors"
        ) from None
    except (OSError, ValueError) as error:
        raise UnknownModel(f"{path} cannot be read ({error}); fetch the model again") from error


def as_ids(value: int | list[int] | tuple[int, ...] | None) -> tuple[int, ...]:
    """A config's token id field as a tuple: None is empty, one id is one element, a list keeps its order."""
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)


def _unsupported(name: str, feature: str) -> UnsupportedModel:
    return UnsupportedModel(
        f"model {name!r} uses {feature}, which this engine does not implement; it runs {', '.join(FAMILIES)} models "
        "with full attention and rotary scaling none, linear or llama3"
    )


def _refuse_features(hf: Mapping[str, Any], family: str, name: str) -> None:
    """Raise UnsupportedModel for settings that would change the numbers without changing any tensor's shape."""
    if hf.get("hidden_act", "silu") not in ("silu", "swish"):
        raise _unsupported(name, f"hidden_act {hf['hidden_act']!r}")
    if hf.get("mlp_bias"):
        raise _unsupported(name, "mlp_bias")
    if hf.get("quantization_config"):
        method = hf["quantization_config"].get("quant_method", "unknown")
        raise _unsupported(name, f"weights stored quantized (quant_method {method!r})")
    if hf.get("partial_rotary_factor", 1.0) != 1.0:
        raise _unsupported(name, f"partial_rotary_factor {hf['partial_rotary_factor']}")
    window = hf.get("sliding_window")
    windowed = family == "mistral" or hf.get("use_sliding_window", False)
    if windowed and window is not None and window < hf["max_position_embeddings"]:
        raise _unsupported(name, f"sliding_window {window}, shorter than its context {hf['max_position_embeddings']}")


def _rope(hf: Mapping[str, Any], name: str) -> tuple[float, RopeScaling | None]:
    """Rotary base and scaling, from `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling` (4)."""
    rope = dict(hf.get("rope_parameters") or hf.get("rope_scaling") or {})
    theta = float(rope.get("rope_theta") or hf.get("rope_theta") or ModelConfig.rope_theta)
    if rope.get("partial_rotary_factor", 1.0) != 1.0:
        raise _unsupported(name, f"partial_rotary_factor {rope['partial_rotary_factor']}")
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind == "default":
        return theta, None
    if kind not in _SCALING_KEYS:
        raise _unsupported(name, f"rotary scaling {kind!r}")
    missing = [key for key in _SCALING_KEYS[kind] if rope.get(key) is None]
    if missing:
        raise _unsupported(name, f"rotary scaling {kind!r} without {', '.join(missing)}")
    return theta, RopeScaling(kind, *(number(rope[key]) for key, number in _SCALING_KEYS[kind].items()))
