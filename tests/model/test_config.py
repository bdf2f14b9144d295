"""Configs: every family, both spellings, and a named refusal of what the engine does not compute."""

from __future__ import annotations

import copy
import json

import pytest
import transformers

from llmcourse.errors import UnknownModel, UnsupportedModel
from llmcourse.model.config import ModelConfig, RopeScaling, load_config
from tests.tiny_models import KINDS, tiny_config, write_tiny

BASE = {
    "model_type": "llama", "vocab_size": 101, "hidden_size": 36, "intermediate_size": 46, "num_hidden_layers": 3,
    "num_attention_heads": 6, "max_position_embeddings": 77, "hidden_act": "silu",
}  # fmt: skip
LLAMA3 = {
    "factor": 6.0, "low_freq_factor": 1.25, "high_freq_factor": 5.0, "original_max_position_embeddings": 512,
}  # fmt: skip


def read(**changes) -> ModelConfig:
    return ModelConfig.from_hf({**BASE, **changes}, "m")


def as_transformers(**changes) -> transformers.PretrainedConfig:
    """Oracle: what transformers makes of the same config.json."""
    return transformers.AutoConfig.for_model(**copy.deepcopy({**BASE, **changes}))  # it writes into what it is given


@pytest.mark.parametrize("kind", KINDS)
def test_n_params_is_the_number_of_parameters_that_transformers_counts(kind, tmp_path):
    model = write_tiny(tmp_path, kind)
    assert load_config(tmp_path).n_params == sum(p.numel() for p in model.parameters())


def test_every_size_of_a_transformers_config_lands_in_its_field():
    config = ModelConfig.from_hf(tiny_config("llama-gqa").to_dict(), "m")
    assert config == ModelConfig(
        name="m", vocab_size=197, width=42, n_layers=3, n_heads=6, n_kv_heads=2, head_dim=14, ffn_width=74,
        context=8192, rms_eps=3e-3, rope_theta=7777.0, bos_id=1, eos_ids=(2, 5),
    )  # fmt: skip


def test_both_spellings_of_rotary_settings_mean_the_same():
    old = read(rope_theta=7777.0, rope_scaling={"type": "llama3", **LLAMA3})
    new = read(rope_parameters={"rope_theta": 7777.0, "rope_type": "llama3", **LLAMA3})
    assert old == new
    assert new.rope_scaling == RopeScaling("llama3", 6.0, 1.25, 5.0, 512)
    assert new.rope_theta == 7777.0


def test_linear_scaling_is_read_in_both_spellings():
    assert read(rope_scaling={"type": "linear", "factor": 2.5}).rope_scaling == RopeScaling("linear", 2.5)
    assert read(rope_parameters={"rope_type": "linear", "factor": 2.5}).rope_scaling == RopeScaling("linear", 2.5)


def test_what_a_config_leaves_out_has_its_usual_default():
    config = read()
    assert (config.n_kv_heads, config.head_dim) == (6, 6)
    assert (config.rms_eps, config.rope_theta, config.rope_scaling) == (1e-6, 10_000.0, None)
    assert (config.tied, config.bos_id, config.eos_ids) == (False, None, ())


@pytest.mark.parametrize(
    ("family", "flag", "qkv", "o", "norm"),
    [
        ("llama", False, False, False, False),
        ("llama", True, True, True, False),
        ("mistral", False, False, False, False),
        ("mistral", True, False, False, False),
        ("qwen2", False, True, False, False),
        ("qwen3", False, False, False, True),
        ("qwen3", True, True, True, True),
    ],
)
def test_each_family_has_its_own_biases_and_norms(family, flag, qkv, o, norm):
    config = read(model_type=family, attention_bias=flag, num_key_value_heads=2)
    assert (config.qkv_bias, config.o_bias, config.qk_norm) == (qkv, o, norm)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2'"),
        ({"model_type": None}, "model_type None"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"vocab_size": None}, "without vocab_size"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rotary scaling 'yarn'"),
        ({"rope_parameters": {"rope_type": "dynamic", "factor": 4.0}}, "rotary scaling 'dynamic'"),
        ({"rope_parameters": {"rope_type": "linear"}}, "without factor"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quant_method 'gptq'"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quant_method 'fp8'"),
        ({"quantization_config": ["fp8"]}, "quantization_config ['fp8']"),
        ({"compression_config": {"format": "pack"}}, "stored quantized"),
        ({"is_causal": False}, "is_causal false"),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "full_attention"),
        ({"rope_scaling": {"rope_type": ["linear"]}}, "rotary scaling ['linear']"),
        ({"rope_scaling": {"type": "linear", "factor": "2.0"}}, "factor '2.0'"),
        ({"rope_scaling": [1]}, "rope_scaling [1]"),
        ({"rope_scaling": {"rope_type": "llama3", **LLAMA3}, "original_max_position_embeddings": 513}, "512"),
        ({"hidden_size": "36"}, "hidden_size '36'"),
        ({"num_hidden_layers": 3.0}, "num_hidden_layers 3.0"),
        ({"num_attention_heads": True}, "num_attention_heads True"),
        ({"num_attention_heads": 0}, "num_attention_heads 0"),
        ({"rms_norm_eps": "1e-5"}, "rms_norm_eps '1e-5'"),
        ({"rope_theta": float("nan")}, "rope_theta nan"),
        ({"tie_word_embeddings": "false"}, "tie_word_embeddings 'false'"),
        ({"eos_token_id": "2"}, "eos_token_id '2'"),
        ({"eos_token_id": [2, "3"]}, "eos_token_id [2, '3']"),
        ({"bos_token_id": 1.5}, "bos_token_id 1.5"),
        ({"model_type": "mistral", "sliding_window": "76"}, "sliding_window '76'"),
        ({"model_type": "mistral", "sliding_window": 0}, "sliding_window 0"),
        ({"model_type": "qwen2", "layer_types": ["full_attention"]}, "layer_types"),
        ({"model_type": "qwen2", "layer_types": ["chunked_attention"] * 3}, "'chunked_attention'"),
        ({"model_type": "qwen3", "layer_types": ["sliding_attention"] * 3}, "does not name"),
        ({"num_key_value_heads": 4}, "6 query heads over 4"),
        ({"head_dim": 7}, "odd head size"),
    ],
)
def test_what_the_engine_does_not_compute_is_refused_by_name(changes, named):
    with pytest.raises(UnsupportedModel) as error:
        read(**changes)
    assert named in str(error.value) and "'m'" in str(error.value)


ALTERNATE = ["full_attention", "sliding_attention", "full_attention"]


@pytest.mark.parametrize(
    ("changes", "windows"),
    [
        ({"model_type": "mistral", "sliding_window": 76}, (76, 76, 76)),
        ({"model_type": "mistral", "sliding_window": 77}, None),
        ({"model_type": "mistral", "sliding_window": None}, None),
        ({"model_type": "mistral", "max_position_embeddings": 9000}, (4096, 4096, 4096)),  # the family's own default
        ({"model_type": "qwen2", "sliding_window": 5}, None),
        ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 5}, None),  # from layer 28 on
        ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}, (None, 5, 5)),
        ({"model_type": "qwen3", "use_sliding_window": True, "max_window_layers": 0, "max_position_embeddings": 9000},
         (4096, 4096, 4096)),
        ({"model_type": "qwen3", "use_sliding_window": True, "sliding_window": 5, "layer_types": ALTERNATE},
         (None, 5, None)),
        ({"model_type": "llama", "sliding_window": 5, "layer_types": ALTERNATE}, None),  # transformers' Llama has none
    ],
)  # fmt: skip
def test_every_layer_has_the_window_that_transformers_gives_it(changes, windows):
    """Oracle: the layer types and the window of transformers' own config."""
    changes = {"num_key_value_heads": 2, **changes}
    assert read(**changes).windows == windows
    theirs = as_transformers(**changes)
    window = getattr(theirs, "sliding_window", None) if theirs.model_type != "llama" else None
    kinds = ["sliding_attention"] * 3 if theirs.model_type == "mistral" else getattr(theirs, "layer_types", None) or ALTERNATE
    seen = [window if kind == "sliding_attention" and window and window < theirs.max_position_embeddings else None
            for kind in kinds]  # fmt: skip
    assert windows == (tuple(seen) if any(seen) else None)


@pytest.mark.parametrize(
    "changes",
    [
        {"rope_parameters": {"rope_type": "default", "rope_theta": 777.0}, "rope_scaling": {"type": "linear", "factor": 2.5}},
        {"rope_parameters": {"rope_type": "linear", "factor": 9.0}, "rope_theta": 55.0,
         "rope_scaling": {"rope_type": "llama3", **LLAMA3}},
        {"rope_parameters": {"rope_type": "linear", "factor": 9.0, "rope_theta": 66.0}, "rope_scaling": None},
        {"rope_theta": 55.0, "rope_scaling": {"rope_type": "linear", "type": "llama3", "factor": 3.0, "rope_theta": 44.0}},
        {"rope_scaling": {"rope_type": "llama3", **{k: v for k, v in LLAMA3.items() if "original" not in k}},
         "original_max_position_embeddings": 600},
    ],
)  # fmt: skip
def test_rotary_settings_in_two_places_are_read_as_transformers_reads_them(changes):
    """Oracle: transformers' own config, version 5."""
    theirs = as_transformers(**changes)
    if not hasattr(theirs, "rope_parameters"):
        pytest.skip("transformers 4 spells rotary settings differently")
    theirs.standardize_rope_params()  # as its rotary embedding does before it computes
    want, got = theirs.rope_parameters, read(**changes)
    assert got.rope_theta == want["rope_theta"]
    assert (got.rope_scaling.kind, got.rope_scaling.factor) == (want["rope_type"], want["factor"])
    if got.rope_scaling.kind == "llama3":
        assert got.rope_scaling.original_context == want["original_max_position_embeddings"]


@pytest.mark.parametrize("family", ["mistral", "qwen2", "qwen3"])
def test_sizes_that_a_config_leaves_out_have_the_default_of_their_family(family):
    """Oracle: transformers' own config. 32 query heads, so that all the defaults fit."""
    theirs = as_transformers(model_type=family, num_attention_heads=32, hidden_size=64)
    config = read(model_type=family, num_attention_heads=32, hidden_size=64)
    assert config.n_kv_heads == theirs.num_key_value_heads
    assert config.head_dim == (getattr(theirs, "head_dim", None) or 2)


@pytest.mark.parametrize("content", ["[]", "3", '"llama"'])
def test_a_config_that_is_no_table_is_named(content, tmp_path):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(UnknownModel, match="config.json holds a"):
        load_config(tmp_path)


def test_eos_ids_in_quotes_are_named_with_their_file(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(BASE))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": "2"}))
    with pytest.raises(UnsupportedModel, match="generation_config.json has eos_token_id '2'"):
        load_config(tmp_path)


def test_eos_ids_of_config_and_generation_config_are_joined(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**BASE, "eos_token_id": 7}))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [9, 7, 8]}))
    assert load_config(tmp_path).eos_ids == (7, 9, 8)


def test_a_folder_without_config_is_no_model(tmp_path):
    with pytest.raises(UnknownModel, match="no config.json"):
        load_config(tmp_path)


def test_a_broken_config_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UnknownModel, match="config.json cannot be read"):
        load_config(tmp_path)
