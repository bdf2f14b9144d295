"""Strict loading of safetensors: equality with transformers' own tensors, and every misfit named."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from llmcourse.errors import OutOfMemory, UnknownModel, UnsupportedModel, WeightMismatch
from llmcourse.model.config import load_config
from llmcourse.model.weights import explain_oom, load_weights
from tests.tiny_models import KINDS, write_tiny

EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def load(folder, dtype=torch.float32):
    return load_weights(folder, load_config(folder), dtype, "cpu")


def change(folder, edit):
    """Rewrite the folder's single weight file after `edit(tensors)`."""
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file({name: values.clone() for name, values in tensors.items()}, folder / "model.safetensors")


@pytest.mark.parametrize("kind", KINDS)
def test_every_tensor_of_every_kind_is_transformers_own(kind, tmp_path):
    """Oracle: the modules of the transformers model that wrote the folder; exact."""
    model = write_tiny(tmp_path, kind, seed=4)
    weights = load(tmp_path)
    assert torch.equal(weights.embed, model.model.embed_tokens.weight)
    assert torch.equal(weights.head, model.lm_head.weight)
    assert torch.equal(weights.norm, model.model.norm.weight)
    assert len(weights.layers) == 3
    for ours, theirs in zip(weights.layers, model.model.layers, strict=True):
        attention, mlp = theirs.self_attn, theirs.mlp
        pairs = {
            "attn_norm": theirs.input_layernorm.weight, "mlp_norm": theirs.post_attention_layernorm.weight,
            "q": attention.q_proj.weight, "k": attention.k_proj.weight, "v": attention.v_proj.weight,
            "o": attention.o_proj.weight, "gate": mlp.gate_proj.weight, "up": mlp.up_proj.weight,
            "down": mlp.down_proj.weight, "q_bias": attention.q_proj.bias, "k_bias": attention.k_proj.bias,
            "v_bias": attention.v_proj.bias, "o_bias": attention.o_proj.bias,
            "q_norm": getattr(getattr(attention, "q_norm", None), "weight", None),
            "k_norm": getattr(getattr(attention, "k_norm", None), "weight", None),
        }  # fmt: skip
        assert pairs.keys() == vars(ours).keys()
        for field, want in pairs.items():
            got = getattr(ours, field)
            assert (got is None and want is None) or torch.equal(got, want), field


def test_a_sharded_folder_loads_as_the_single_file_does(tmp_path):
    model = write_tiny(tmp_path / "one", "llama-gqa")
    model.save_pretrained(tmp_path / "many", max_shard_size="100KB")
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 2
    one, many = load(tmp_path / "one"), load(tmp_path / "many")
    assert torch.equal(one.head, many.head)
    for a, b in zip(one.layers, many.layers, strict=True):
        assert all(torch.equal(getattr(a, f), getattr(b, f)) for f in ("q", "k", "v", "o", "gate", "up", "down"))


def test_a_tied_head_is_the_embedding_itself(tmp_path):
    write_tiny(tmp_path, "llama-tied")
    assert HEAD not in load_file(tmp_path / "model.safetensors")
    weights = load(tmp_path, torch.bfloat16)
    assert weights.head is weights.embed


def test_a_tied_head_that_is_stored_and_equal_is_tolerated(tmp_path):
    write_tiny(tmp_path, "llama-tied")
    change(tmp_path, lambda tensors: tensors.update({HEAD: tensors[EMBED]}))
    weights = load(tmp_path)
    assert weights.head is weights.embed


def test_a_tied_model_may_store_its_one_table_as_the_head(tmp_path):
    """Oracle: the same folder before the tensor was renamed."""
    write_tiny(tmp_path, "llama-tied")
    before = load(tmp_path).embed.clone()
    change(tmp_path, lambda tensors: tensors.update({HEAD: tensors.pop(EMBED)}))
    weights = load(tmp_path)
    assert torch.equal(weights.embed, before)
    assert weights.head is weights.embed


def test_an_old_index_beside_a_newer_single_file_is_not_read(tmp_path):
    """transformers reads the single file; the shards here hold another model."""
    write_tiny(tmp_path, "llama-gqa", seed=1).save_pretrained(tmp_path, max_shard_size="100KB")
    newer = write_tiny(tmp_path / "newer", "llama-gqa", seed=2)
    (tmp_path / "newer" / "model.safetensors").rename(tmp_path / "model.safetensors")
    assert (tmp_path / "model.safetensors.index.json").is_file()
    assert torch.equal(load(tmp_path).embed, newer.model.embed_tokens.weight)


def test_a_tensor_is_read_from_the_shard_that_the_index_names(tmp_path):
    model = write_tiny(tmp_path / "one", "llama-gqa")
    model.save_pretrained(tmp_path / "many", max_shard_size="100KB")
    index = json.loads((tmp_path / "many" / "model.safetensors.index.json").read_text())["weight_map"]
    for shard in {*index.values()} - {index[EMBED]}:
        tensors = load_file(tmp_path / "many" / shard)
        save_file({**tensors, EMBED: torch.zeros(197, 42)}, tmp_path / "many" / shard)
    assert torch.equal(load(tmp_path / "many").embed, model.model.embed_tokens.weight)


@pytest.mark.parametrize("content", ["[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": "../other/b"}}', "{"])
def test_an_index_that_is_none_is_named(content, tmp_path):
    write_tiny(tmp_path, "llama")
    (tmp_path / "model.safetensors").rename(tmp_path / "model-1.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(content)
    with pytest.raises(UnknownModel, match=r"model\.safetensors\.index\.json"):
        load(tmp_path)


def test_fp8_weights_are_called_fp8(tmp_path):
    write_tiny(tmp_path, "llama")
    name = "model.layers.0.mlp.up_proj.weight"
    change(tmp_path, lambda tensors: tensors.update({name: tensors[name].to(torch.float8_e4m3fn)}))
    with pytest.raises(UnsupportedModel, match=f"fp8 \\({name} is F8_E4M3"):
        load(tmp_path)


def test_a_tied_head_that_is_stored_and_differs_is_refused(tmp_path):
    write_tiny(tmp_path, "llama-tied")
    change(tmp_path, lambda tensors: tensors.update({HEAD: tensors[EMBED] + 1e-3}))
    with pytest.raises(WeightMismatch, match="ties the output head"):
        load(tmp_path)


def test_an_untied_head_that_is_missing_is_named(tmp_path):
    write_tiny(tmp_path, "llama")
    change(tmp_path, lambda tensors: tensors.pop(HEAD))
    with pytest.raises(WeightMismatch, match=r"1 missing: lm_head\.weight"):
        load(tmp_path)


def test_every_missing_unexpected_and_misshapen_tensor_is_named(tmp_path):
    write_tiny(tmp_path, "llama-gqa")
    k, up = "model.layers.1.self_attn.k_proj.weight", "model.layers.2.mlp.up_proj.weight"
    gone = [f"model.layers.{i}.mlp.down_proj.weight" for i in range(3)]

    def edit(tensors):
        tensors[k] = tensors[k].T.contiguous()
        tensors[up] = tensors[up].to(torch.int8)
        tensors["model.layers.0.self_attn.q_proj.bias"] = torch.zeros(84)
        for name in gone:
            del tensors[name]

    change(tmp_path, edit)
    with pytest.raises(WeightMismatch) as error:
        load(tmp_path)
    said = str(error.value)
    assert "3 missing: " + "; ".join(gone) in said
    assert "1 unexpected: model.layers.0.self_attn.q_proj.bias" in said
    assert f"{k} is [42, 28], config says [28, 42]" in said
    assert f"{up} is stored as I8" in said


def test_a_layer_more_than_the_config_says_is_unexpected(tmp_path):
    write_tiny(tmp_path, "llama-gqa")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 2}))
    with pytest.raises(WeightMismatch) as error:
        load(tmp_path)
    assert "9 unexpected" in str(error.value) and "model.layers.2.self_attn.q_proj.weight" in str(error.value)


def test_rotary_buffers_of_old_files_are_tolerated_by_name(tmp_path):
    write_tiny(tmp_path, "llama")
    change(tmp_path, lambda t: t.update({"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(7)}))
    load(tmp_path)
    change(tmp_path, lambda t: t.update({"model.layers.0.self_attn.inv_freq": torch.ones(7)}))
    with pytest.raises(WeightMismatch, match=r"1 unexpected: model\.layers\.0\.self_attn\.inv_freq"):
        load(tmp_path)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_arrive_rounded_to_the_dtype_asked_for(dtype, tmp_path):
    model = write_tiny(tmp_path, "qwen2")
    weights = load(tmp_path, dtype)
    assert torch.equal(weights.layers[1].gate, model.model.layers[1].mlp.gate_proj.weight.to(dtype))
    assert torch.equal(weights.layers[1].k_bias, model.model.layers[1].self_attn.k_proj.bias.to(dtype))


def test_changing_a_loaded_weight_changes_neither_the_file_nor_the_next_load(tmp_path):
    """float32 weights stay mapped from the file: the mapping must be private."""
    write_tiny(tmp_path, "llama")
    before = (tmp_path / "model.safetensors").read_bytes()
    first = load(tmp_path)
    first.layers[0].q.zero_()
    assert load(tmp_path).layers[0].q.abs().max() > 0
    assert (tmp_path / "model.safetensors").read_bytes() == before


def test_a_folder_without_weights_is_named(tmp_path):
    write_tiny(tmp_path, "llama")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(UnknownModel, match=r"lacks weight files: model\.safetensors"):
        load(tmp_path)


def test_a_missing_shard_is_named(tmp_path):
    write_tiny(tmp_path / "one", "llama").save_pretrained(tmp_path / "many", max_shard_size="100KB")
    shard = sorted((tmp_path / "many").glob("*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(UnknownModel, match=shard.name):
        load(tmp_path / "many")


def test_pickled_weights_are_refused(tmp_path):
    write_tiny(tmp_path, "llama")
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(UnsupportedModel, match="pickles"):
        load(tmp_path)


def test_a_weight_file_cut_short_is_named(tmp_path):
    write_tiny(tmp_path, "llama")
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(WeightMismatch, match="not a whole safetensors file"):
        load(tmp_path)


def test_an_allocation_that_fails_says_how_many_bytes_for_what():
    with pytest.raises(OutOfMemory, match=r"the big table need 4,611,686,018,427,387,904 bytes .* on cpu"):
        with explain_oom("the big table", 2**62, "cpu"):
            torch.empty(2**60)


def test_other_errors_inside_an_allocation_keep_their_own_name():
    with pytest.raises(RuntimeError, match="size of tensor"):
        with explain_oom("nothing", 0, "cpu"):
            torch.ones(2) + torch.ones(3)
