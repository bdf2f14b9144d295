"""Memory, counted. Oracles: figures that the models' makers publish, tensors that PyTorch allocates, arithmetic by hand."""

from __future__ import annotations

import pytest
import torch

from llmcourse.cache import ContiguousCache
from llmcourse.measure.known_models import MODELS, known_model
from llmcourse.measure.memory import (
    Memory, context_that_outgrows, kept_tokens, kv_bytes, kv_bytes_per_token, requests_that_fit, weight_bytes,
)  # fmt: skip
from tests.caches import opened
from tests.random_model import TINY, random_model

PER_TOKEN = {  # bytes at 16 bits, or in the model's own format; by hand
    "SmolLM2-135M": 23_040, "Llama-2-7B": 524_288, "Llama-2-13B": 819_200, "Llama-3-8B": 131_072,
    "Llama-3-70B": 327_680, "Mistral-7B": 131_072, "Qwen3-8B": 147_456, "DeepSeek-V3": 70_272, "DeepSeek-V3.2": 48_068,
    "DeepSeek-V4-Pro": 5_031.4375, "DeepSeek-V4-Flash": 3_514.25,
}  # fmt: skip
PUBLISHED = {  # parameters as the weight files on the hub have them
    "SmolLM2-135M": 134_515_008, "Llama-2-7B": 6_738_415_616, "Llama-2-13B": 13_015_864_320,
    "Llama-3-8B": 8_030_261_248, "Llama-3-70B": 70_553_706_496, "Mistral-7B": 7_241_732_096, "Qwen3-8B": 8_190_735_360,
}  # fmt: skip


def test_the_table_has_eleven_models_and_each_token_costs_what_their_sizes_say():
    assert {name: kv_bytes_per_token(model) for name, model in MODELS.items()} == PER_TOKEN


def test_parameters_by_formula_are_those_of_the_published_files():
    assert {name: MODELS[name].config.n_params for name in PUBLISHED} == PUBLISHED


def test_a_compressed_models_formula_as_text_has_its_value():
    compressed = [model.config for model in MODELS.values() if hasattr(model.config, "formula")]
    assert len(compressed) == 4
    for one in compressed:
        assert eval(one.formula.replace("·", "*")) == one.bytes_per_token


def test_the_table_agrees_with_the_default_model_itself(model):
    own, row = model.config, MODELS["SmolLM2-135M"].config
    sizes = "vocab_size width n_layers n_heads n_kv_heads head_dim ffn_width context tied n_params".split()
    assert [getattr(own, size) for size in sizes] == [getattr(row, size) for size in sizes]


def test_every_row_says_where_its_numbers_are_published():
    assert all(model.source for model in MODELS.values())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_the_count_is_what_a_cache_allocates(dtype):
    cache = ContiguousCache(TINY, dtype, "cpu", first_tokens=23)
    slots = [cache.slots[opened(cache, 23)] for _ in range(3)]
    allocated = sum(slot.keys.nbytes + slot.values.nbytes for slot in slots)
    assert kv_bytes(TINY, 23, batch=3, kv_bits=8 * dtype.itemsize) == allocated


def test_weights_are_what_the_tensors_hold():
    weights = random_model(dtype=torch.float32).weights
    layers = [tensor for layer in weights.layers for tensor in vars(layer).values() if tensor is not None]
    assert weight_bytes(TINY, 32) == sum(tensor.nbytes for tensor in [*layers, weights.norm, weights.embed])


def test_a_13b_model_fills_3_36_gb_at_4096_tokens():
    assert kv_bytes(MODELS["Llama-2-13B"], 4096) == 3_355_443_200


def test_half_the_bits_take_half_the_bytes():
    llama = MODELS["Llama-3-8B"]
    assert [kv_bytes(llama, 100, 2, bits) for bits in (16, 8, 4)] == [26_214_400, 13_107_200, 6_553_600]
    assert weight_bytes(llama, 4) == PUBLISHED["Llama-3-8B"] / 2


def test_a_compressed_cache_has_its_own_format_whatever_the_bits():
    assert kv_bytes_per_token(MODELS["DeepSeek-V3"], 4) == 70_272


def test_a_window_stops_the_growth():
    mistral = MODELS["Mistral-7B"]
    assert [kept_tokens(mistral, n) for n in (4_095, 4_096, 4_097, 32_768)] == [4_095, 4_096, 4_096, 4_096]
    assert kv_bytes(mistral, 32_768) == kv_bytes(mistral, 4_096) == 536_870_912


def test_the_cache_outgrows_the_weights_where_both_are_equal():
    llama = MODELS["Llama-2-13B"]
    n = context_that_outgrows(llama, batch=4)
    assert n * 4 * 819_200 == pytest.approx(weight_bytes(llama))
    assert context_that_outgrows(MODELS["Mistral-7B"]) is None


def test_as_many_requests_fit_as_fill_what_the_weights_leave():
    llama = MODELS["Llama-2-13B"]
    one = kv_bytes(llama, 1000)
    for n in (0, 1, 7):
        exactly = weight_bytes(llama) + n * one
        assert requests_that_fit(llama, exactly, 1000) == n
        assert requests_that_fit(llama, exactly - 1, 1000) == max(0, n - 1)


def test_doubling_the_context_halves_the_requests_that_fit():
    fit = [requests_that_fit(MODELS["Llama-2-13B"], 80e9, 1024 * 2**i) for i in range(4)]
    assert fit == [64, 32, 16, 8]


def test_names_are_found_whatever_their_case():
    assert known_model("llama-2-13b") is MODELS["Llama-2-13B"] and known_model("llama") is None


def test_the_account_adds_up():
    account = Memory(MODELS["Llama-3-8B"], 2048, batch=3, kv_bits=8, weight_bits=4, memory_bytes=10e9).as_json()
    assert account["total_bytes"] == account["kv_bytes"] + account["weight_bytes"]
    assert account["kv_bytes"] == 65_536 * 2048 * 3
    assert account["requests_that_fit"] == int((10e9 - 4_015_130_624) // (65_536 * 2048))
