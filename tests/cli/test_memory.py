"""`llmcourse memory`: the arithmetic that is shown, the fields, and the ways to name a model."""

from __future__ import annotations

import json

import pytest

FIELDS = [
    "model", "context", "batch", "kv_bits", "weight_bits", "kv_bytes_per_token", "kv_tokens", "kv_bytes", "n_params",
    "weight_bytes", "total_bytes", "outgrows_at", "memory_bytes", "requests_that_fit", "source",
]  # fmt: skip


def test_the_arithmetic_is_shown_line_by_line(run):
    out = run("memory", "--model", "Llama-2-13B").out.splitlines()
    assert "2 (K, V) · 40 layers · 40 heads · 128 · 2 bytes = 819,200 bytes" in out[1]
    assert "× 4,096 tokens × 1 request" in out[2] and out[2].endswith("= 3,355,443,200 bytes  (3.36 GB)")
    assert "13,015,864,320 parameters · 2 bytes" in out[3] and "(26.03 GB)" in out[3]
    assert "(29.39 GB)" in out[4] and "31,777 tokens" in out[5] and len(out) == 6


def test_fields_are_those_that_are_documented(run):
    options = "--context 8192 --batch 2 --kv-bits 8 --weight-bits 4 --memory 24 --json"
    fields = json.loads(run("memory", "--model", "llama-3-8b", *options.split()).out)
    assert list(fields) == FIELDS
    assert (fields["model"], fields["kv_bytes_per_token"], fields["kv_bytes"]) == ("Llama-3-8B", 65_536, 65_536 * 8192 * 2)
    assert fields["requests_that_fit"] == int((24e9 - fields["weight_bytes"]) // (65_536 * 8192))


def test_how_many_requests_fit_is_said_when_memory_is_given(run):
    assert "= 16 requests of 4,096 tokens." in run("memory", "--model", "Llama-2-13B", "--memory", "80").out
    assert "not even the weights fit" in run("memory", "--model", "Llama-2-13B", "--memory", "20").out


def test_a_window_and_a_compressed_cache_are_explained(run):
    assert "the last 4,096 are kept" in run("memory", "--model", "Mistral-7B", "--context", "9000").out
    deepseek = run("memory", "--model", "DeepSeek-V3").out
    assert "61 · (512 + 64) · 2 bytes" in deepseek and "= 70,272 bytes" in deepseek


def test_the_table_can_be_listed(run):
    assert "819,200" in run("memory", "--list").out
    rows = json.loads(run("memory", "--list", "--json").out)["models"]
    assert len(rows) == 11 and rows[5]["window"] == 4096


def test_without_a_name_it_is_the_default_model(run, default_folder):
    assert "30 layers · 3 heads · 64 · 2 bytes = 23,040 bytes" in run("memory").out


def test_a_folder_needs_a_config_and_no_weights(run, tmp_path):
    config = {
        "model_type": "llama", "vocab_size": 11, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 5,
        "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 2, "max_position_embeddings": 64,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    fields = json.loads(run("memory", "--model", str(tmp_path), "--kv-bits", "32", "--json").out)
    assert fields["kv_bytes_per_token"] == 2 * 5 * 3 * 2 * 4


def test_an_unknown_name_is_an_error_that_lists_the_table(run):
    ran = run("memory", "--model", "Llama-9")
    assert ran.code == 1 and "'Llama-9'" in ran.err and "Llama-2-13B" in ran.err and ran.err.count("\n") == 1


@pytest.mark.parametrize("option", ["--context", "--batch"])
def test_nothing_is_no_context_and_no_batch(run, option):
    assert run("memory", "--model", "Llama-2-7B", option, "0").code == 2
