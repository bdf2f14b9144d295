"""Reading a Hugging Face `config.json` without believing it: every value is checked, every setting known or refused.

A setting that a config leaves out has the default of its family in transformers, which is not always "off": a Mistral
that says nothing has a window of 4,096 tokens. The oracle of this file is transformers' own configuration classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from llmcourse.errors import UnsupportedModel

_WINDOWED = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
DEFAULTS: dict[str, dict[str, Any]] = {  # what transformers takes where a config names nothing
    "llama": {},
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "qwen2": {"num_key_value_heads": 32, **_WINDOWED},
    "qwen3": {"num_key_value_heads": 32, "head_dim": 128, **_WINDOWED},
}
FAMILIES = tuple(DEFAULTS)
_LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
_SCALINGS = {"linear": ("factor",), "llama3": _LLAMA3}
_ORIGINAL = "original_max_position_embeddings"


def unsupported(name: str, feature: str) -> UnsupportedModel:
    """The error for a model called `name` that uses `feature`."""
    return UnsupportedModel(
        f"model {name!r} uses {feature}, which this engine does not implement; it runs {', '.join(FAMILIES)} models "
        "with full or sliding-window attention and rotary scaling none, linear or llama3"
    )


class Fields:
    """The settings of one config, each checked when it is read. Raises UnsupportedModel naming the key and its value.

    settings: the parsed config.json. name: the model's, for messages.
    """

    def __init__(self, settings: Mapping[str, Any], name: str):
        if not isinstance(settings, Mapping):
            raise UnsupportedModel(f"the config of model {name!r} is a {type(settings).__name__}, not a table of settings")
        family = settings.get("model_type")
        if not isinstance(family, str) or family not in DEFAULTS:
            raise unsupported(name, f"model_type {family!r}")
        self.name, self.family = name, family
        self._settings = {**DEFAULTS[family], **settings}

    def get(self, key: str, default: Any = None) -> Any:
        """A setting as it is; `default` where it is missing or null."""
        value = self._settings.get(key)
        return default if value is None else value

    def wrong(self, key: str, value: Any, wanted: str) -> UnsupportedModel:
        """The error for a value that is not what its key stands for."""
        return UnsupportedModel(f"the config of model {self.name!r} has {key} {value!r}; it must be {wanted}")

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number, at least 1."""
        value = self.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.wrong(key, value, "a whole number, at least 1")
        return value

    def number(self, key: str, default: float | None = None, table: Mapping[str, Any] | None = None) -> float:
        """A finite number above 0, of the config or of a table inside it."""
        value = self.get(key, default) if table is None else table.get(key, default)
        real = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not real or not math.isfinite(value) or value <= 0:
            raise self.wrong(key, value, "a number above 0")
        return float(value)

    def flag(self, key: str, default: bool = False) -> bool:
        """true or false; a string such as "false" would count as true."""
        value = self.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def table(self, key: str) -> dict[str, Any]:
        """A table of settings inside the config; empty where there is none."""
        value = self.get(key, {})
        if not isinstance(value, Mapping):
            raise self.wrong(key, value, "a table of settings")
        return dict(value)

    def ids(self, key: str) -> tuple[int, ...]:
        """Token ids: nothing, one, or a list of them."""
        return token_ids(self.get(key), f"the config of model {self.name!r} has {key}")


def token_ids(value: Any, where: str) -> tuple[int, ...]:
    """A token id field as a tuple: None is empty, one id is one element, a list keeps its order.

    Raises UnsupportedModel, beginning with `where`, for anything but whole numbers: the string "2" is no id.
    """
    ids = [] if value is None else value if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(each, bool) or not isinstance(each, int) for each in ids):
        raise UnsupportedModel(f"{where} {value!r}; token ids are whole numbers without quotes")
    return tuple(ids)


def refuse_features(fields: Fields) -> None:
    """Raise UnsupportedModel for settings that would change the numbers without changing any tensor's shape."""
    if fields.get("hidden_act", "silu") not in ("silu", "swish"):
        raise unsupported(fields.name, f"hidden_act {fields.get('hidden_act')!r}")
    if fields.flag("mlp_bias"):
        raise unsupported(fields.name, "mlp_bias")
    if not fields.flag("is_causal", True):
        raise unsupported(fields.name, "attention in both directions (is_causal false)")
    for key in ("quantization_config", "compression_config"):
        if table := fields.table(key):
            raise unsupported(fields.name, f"weights stored quantized (quant_method {table.get('quant_method', key)!r})")
    _refuse_partial(fields, fields.get("partial_rotary_factor", 1.0))


def windows(fields: Fields, n_layers: int, context: int) -> tuple[int | None, ...] | None:
    """How many tokens, itself included, a token sees in each layer, None for all; None when no layer has a window.

    Mistral has one window for all layers. Qwen's layers have theirs by `layer_types`, else from layer
    `max_window_layers` on, and only with `use_sliding_window`. A window as long as the context is none.
    """
    if fields.family == "llama":
        return None  # as in transformers, whose Llama reads neither sliding_window nor layer_types
    on = fields.family == "mistral" or fields.flag("use_sliding_window")
    window = fields.count("sliding_window") if on and fields.get("sliding_window") is not None else None
    kinds = None if fields.family == "mistral" else fields.get("layer_types")
    if kinds is None:
        first = fields.get("max_window_layers", 0)
        if isinstance(first, bool) or not isinstance(first, int):
            raise fields.wrong("max_window_layers", first, "a whole number")
        slides = [window is not None and i >= first for i in range(n_layers)]
    else:
        slides = _slides(fields, kinds, n_layers, window)
    if window is None or window >= context or not any(slides):
        return None
    return tuple(window if slide else None for slide in slides)


def _slides(fields: Fields, kinds: Any, n_layers: int, window: int | None) -> list[bool]:
    """Which layers `layer_types` gives a window."""
    known = ("full_attention", "sliding_attention")
    if not isinstance(kinds, (list, tuple)) or len(kinds) != n_layers:
        raise fields.wrong("layer_types", kinds, f"a list with one entry for each of {n_layers} layers")
    other = [kind for kind in kinds if kind not in known]
    if other:
        raise unsupported(fields.name, f"a layer of type {other[0]!r}")
    if known[1] in kinds and window is None:
        raise unsupported(fields.name, "layers with a sliding window whose length it does not name")
    return [kind == known[1] for kind in kinds]


def rope(fields: Fields) -> tuple[float, dict[str, Any] | None]:
    """Rotary base, and the values of `RopeScaling` or None.

    transformers 5 writes `rope_parameters`, 4 wrote `rope_theta` and `rope_scaling`. Where a config has both,
    `rope_scaling` wins as a whole: what was added by hand or by an older program counts.
    """
    table = fields.table("rope_scaling") or fields.table("rope_parameters")
    if any(isinstance(value, Mapping) for value in table.values()):
        raise unsupported(fields.name, f"rotary settings that differ by the type of a layer ({', '.join(table)})")
    _refuse_partial(fields, table.get("partial_rotary_factor", 1.0))
    theta = fields.number("rope_theta", 10_000.0) if "rope_theta" not in table else fields.number("rope_theta", None, table)
    kind = table.get("rope_type", table.get("type", "default"))
    if kind == "default":
        return theta, None
    if not isinstance(kind, str) or kind not in _SCALINGS:
        raise unsupported(fields.name, f"rotary scaling {kind!r}")
    if kind == "llama3":
        _one_original(fields, table)
    missing = [key for key in _SCALINGS[kind] if table.get(key) is None]
    if missing:
        raise unsupported(fields.name, f"rotary scaling {kind!r} without {', '.join(missing)}")
    values = {key: fields.number(key, None, table) for key in _SCALINGS[kind]}
    if _ORIGINAL in values:
        values["original_context"] = int(values.pop(_ORIGINAL))
    return theta, {"kind": kind, **values}


def _one_original(fields: Fields, table: dict[str, Any]) -> None:
    """The original context may stand in the table or beside it: transformers 4 reads the one, 5 the other."""
    beside = fields.get(_ORIGINAL)
    if beside is None:
        return
    if table.setdefault(_ORIGINAL, beside) != beside:
        raise UnsupportedModel(
            f"the config of model {fields.name!r} has {_ORIGINAL} twice, {table[_ORIGINAL]!r} with the rotary settings and "
            f"{beside!r} beside them; delete the one that is wrong"
        )


def _refuse_partial(fields: Fields, factor: Any) -> None:
    if factor is not None and factor != 1.0:
        raise unsupported(fields.name, f"partial_rotary_factor {factor!r}")
