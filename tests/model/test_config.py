"""Configs: every family, both spellings, and a named refusal of what the engine does not compute."""

from __future__ import annotations

import json

import pytest

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
        ("qwen2", False, True, False, False),
        ("qwen3", False, False, False, True),
        ("qwen3", True, True, True, True),
    ],
)
def test_each_family_has_its_own_biases_and_norms(family, flag, qkv, o, norm):
    config = read(model_type=family, attention_bias=flag)
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
        ({"model_type": "mistral", "sliding_window": 76}, "sliding_window 76"),
        ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 76}, "sliding_window 76"),
        ({"num_key_value_heads": 4}, "6 query heads over 4"),
        ({"head_dim": 7}, "odd head size"),
    ],
)
def test_what_the_engine_does_not_compute_is_refused_by_name(changes, named):
    with pytest.raises(UnsupportedModel) as error:
        read(**changes)
    assert named in str(error.value) and "'m'" in str(error.value)


def test_a_window_that_covers_the_whole_context_is_no_window():
    assert read(model_type="mistral", sliding_window=77).context == 77
    assert read(model_type="qwen2", use_sliding_window=False, sliding_window=5).context == 77


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
