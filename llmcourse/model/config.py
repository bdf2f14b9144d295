"""What a Llama-family model looks like: sizes, rotary settings and special ids, read from its `config.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmcourse.errors import UnknownModel
from llmcourse.model.hf_config import Fields, refuse_features, rope, token_ids, unsupported, windows

_REQUIRED = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "max_position_embeddings",
)  # fmt: skip
_BIAS_BY_FLAG = ("llama", "qwen3")  # the families whose attention_bias counts


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
    """Sizes and settings of one model. Letters: d width, L layers, Hq/Hkv heads, D head size, f feed-forward, V.

    windows: for each layer how many tokens a token sees, itself included, or None for all; None when every layer
    sees all of them.
    """

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
        fields = Fields(hf, name)
        missing = [key for key in _REQUIRED if fields.get(key) is None]
        if missing:
            raise unsupported(name, f"a config without {', '.join(missing)}")
        refuse_features(fields)
        heads, width = fields.count("num_attention_heads"), fields.count("hidden_size")
        n_layers, context = fields.count("num_hidden_layers"), fields.count("max_position_embeddings")
        theta, scaling = rope(fields)
        family, biased = fields.family, fields.flag("attention_bias")
        config = cls(
            name=name,
            vocab_size=fields.count("vocab_size"),
            width=width,
            n_layers=n_layers,
            n_heads=heads,
            n_kv_heads=fields.count("num_key_value_heads", heads),
            head_dim=fields.count("head_dim", width // heads),
            ffn_width=fields.count("intermediate_size"),
            context=context,
            rms_eps=fields.number("rms_norm_eps", cls.rms_eps),
            rope_theta=theta,
            rope_scaling=None if scaling is None else RopeScaling(**scaling),
            tied=fields.flag("tie_word_embeddings"),
            qkv_bias=family == "qwen2" or (biased and family in _BIAS_BY_FLAG),
            o_bias=biased and family in _BIAS_BY_FLAG,
            qk_norm=family == "qwen3",
            bos_id=next(iter(fields.ids("bos_token_id")), None),
            eos_ids=fields.ids("eos_token_id"),
            windows=windows(fields, n_layers, context),
        )
        if config.n_heads % config.n_kv_heads:
            raise unsupported(name, f"{config.n_heads} query heads over {config.n_kv_heads} key/value heads")
        if config.head_dim % 2:
            raise unsupported(name, f"rotary embedding over an odd head size ({config.head_dim})")
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
        extra = token_ids(read_json(generation).get("eos_token_id"), f"{generation} has eos_token_id")
        own = token_ids(hf.get("eos_token_id"), f"{folder / 'config.json'} has eos_token_id")
        config["eos_token_id"] = list(dict.fromkeys([*own, *extra]))
    return ModelConfig.from_hf(config, name or folder.name)


def read_json(path: Path) -> dict[str, Any]:
    """Parse one JSON file of a model folder; UnknownModel names the file if it is missing, broken or no table."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnknownModel(
            f"{path.parent} is not a model folder: it has no {path.name}. A model folder holds config.json, "
            "tokenizer.json and *.safetensors"
        ) from None
    except (OSError, ValueError) as error:
        raise UnknownModel(f"{path} cannot be read ({error}); fetch the model again") from error
    if not isinstance(content, dict):
        raise UnknownModel(f"{path} holds a {type(content).__name__}, not a table of settings; fetch the model again")
    return content
