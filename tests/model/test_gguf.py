"""GGUF conversion: against `gguf`'s own numbers, an explicit permutation, HF `tokenizers`, and transformers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, dequantize
from gguf.quants import quantize
from safetensors.numpy import load_file

from llmcourse.errors import DownloadFailed, UnknownModel, UnsupportedModel
from llmcourse.model import gguf as converter
from llmcourse.model.config import load_config
from llmcourse.model.gguf import convert_gguf, unpermute
from llmcourse.model.load import load_model
from llmcourse.model.weights import load_weights, tensor_shapes
from llmcourse.text.tokenizer import Tokenizer
from tests import tiny_gguf
from tests.tiny_gguf import HEAD_DIM, HEADS, KV_HEADS, TEMPLATE, tiny_tensors, write_gguf

TEXTS = ["a  12", "the  cat in 3 hats\n\n1", "½ cup  ½", " the", "<|im_end|>the"]


def convert(tmp_path, tensors=None, **options):
    file = write_gguf(tmp_path / "tiny.gguf", tensors or tiny_tensors(), **options)
    return convert_gguf(file, tmp_path / "made")


def half_split_rows(values, n_heads):
    """Row by row: in a head of D rows, GGUF rows 2i and 2i+1 are rows i and D/2+i of the Hugging Face order."""
    out = np.empty_like(values)
    for head in range(n_heads):
        for i in range(HEAD_DIM // 2):
            first = head * HEAD_DIM
            out[first + i] = values[first + 2 * i]
            out[first + HEAD_DIM // 2 + i] = values[first + 2 * i + 1]
    return out


def stored(pair):
    values, kind = pair
    return dequantize(quantize(values, kind), kind)


def test_every_tensor_equals_what_the_gguf_library_expands(tmp_path):
    tensors = tiny_tensors(head=True)
    got = load_file(convert(tmp_path, tensors) / "model.safetensors")
    assert set(got) == set(tensor_shapes(load_config(tmp_path / "made")))
    names = {"attn_norm": "input_layernorm", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
             "ffn_down": "mlp.down_proj"}  # fmt: skip
    for i in (0, 1):
        for ours, theirs in names.items():
            want = stored(tensors[f"blk.{i}.{ours}.weight"])
            np.testing.assert_array_equal(got[f"model.layers.{i}.{theirs}.weight"], want)
    np.testing.assert_array_equal(got["model.embed_tokens.weight"], stored(tensors["token_embd.weight"]))
    np.testing.assert_array_equal(got["model.norm.weight"], stored(tensors["output_norm.weight"]))
    np.testing.assert_array_equal(got["lm_head.weight"], stored(tensors["output.weight"]))


@pytest.mark.parametrize(("part", "n_heads"), [("q", HEADS), ("k", KV_HEADS)])
def test_rows_of_q_and_k_of_a_llama_file_are_put_back_into_half_split_order(part, n_heads, tmp_path):
    zeros = np.zeros(tiny_tensors()["blk.0.attn_output.weight"][0].shape[0], np.float32), GGMLQuantizationType.F32
    tensors = tiny_tensors(bias=True) | {f"blk.{i}.attn_output.bias": zeros for i in (0, 1)}
    file = write_gguf(tmp_path / "tiny.gguf", tensors)
    config_file = convert_gguf(file, tmp_path / "made") / "model.safetensors"
    got = load_file(config_file)
    for kind in ("weight", "bias"):
        want = half_split_rows(stored(tensors[f"blk.1.attn_{part}.{kind}"]), n_heads)
        np.testing.assert_array_equal(got[f"model.layers.1.self_attn.{part}_proj.{kind}"], want)


def test_unpermute_moves_rows_inside_each_head_only():
    rows = np.arange(8)[:, None]  # two heads of four rows
    assert unpermute(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.parametrize("arch", ["qwen2", "qwen3"])
def test_rows_of_other_families_keep_their_order(arch, tmp_path):
    tensors = tiny_tensors(bias=arch == "qwen2", qk_norm=arch == "qwen3")
    got = load_file(convert(tmp_path, tensors, arch=arch, pre="qwen2") / "model.safetensors")
    np.testing.assert_array_equal(got["model.layers.0.self_attn.q_proj.weight"], stored(tensors["blk.0.attn_q.weight"]))


@pytest.mark.parametrize(("arch", "options"), [("llama", {}), ("llama", {"head": True}), ("qwen2", {"bias": True})])
def test_a_converted_model_gives_the_logits_of_transformers_own_reading(arch, options, tmp_path):
    """Oracle: transformers' `gguf_file=` (it ignores Qwen3's head size); tolerance 1e-5, logits are about 3."""
    from transformers import AutoModelForCausalLM

    write_gguf(tmp_path / "tiny.gguf", tiny_tensors(**options), arch=arch, pre="smollm" if arch == "llama" else "qwen2")
    oracle = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="tiny.gguf", torch_dtype=torch.float32)
    assert_same_logits(convert_gguf(tmp_path / "tiny.gguf", tmp_path / "made"), oracle)


@pytest.mark.parametrize(
    ("arch", "options"), [("llama", {"head": True}), ("qwen2", {"bias": True}), ("qwen3", {"qk_norm": True})]
)
def test_transformers_loads_a_converted_folder_as_the_same_model(arch, options, tmp_path):
    """Oracle: transformers on the converted folder; tolerance 1e-5, logits are about 3."""
    from transformers import AutoModelForCausalLM

    folder = convert(tmp_path, tiny_tensors(**options), arch=arch, pre="qwen2")
    assert_same_logits(folder, AutoModelForCausalLM.from_pretrained(folder))


def assert_same_logits(folder, oracle):
    ids = [(7 * i) % 250 for i in range(200)]
    with torch.no_grad():
        expected = oracle.eval()(torch.tensor([ids])).logits[0]
    assert expected.abs().max() > 1
    torch.testing.assert_close(load_model(folder, device="cpu")(ids), expected, atol=1e-5, rtol=0)


def test_the_config_is_the_shortest_decimals_of_the_file(tmp_path):
    config = load_config(convert(tmp_path))
    assert (config.rms_eps, config.rope_theta) == (1e-5, 70_000.0)
    assert (config.n_heads, config.n_kv_heads, config.head_dim, config.tied) == (HEADS, KV_HEADS, HEAD_DIM, True)
    assert (config.bos_id, config.eos_ids) == (1, (2, 0))


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_llama3_rotary_scaling_is_recovered_from_its_table(factor, tmp_path):
    """The table is computed here frequency by frequency, as in transformers' description of the llama3 type."""
    table = []
    for i in range(HEAD_DIM // 2):
        wavelength = 2 * math.pi * 70_000.0 ** (2 * i / HEAD_DIM)
        if wavelength < 8192 / 4:
            table.append(1.0)
        elif wavelength > 8192 / 1:
            table.append(factor)
        else:
            smooth = (8192 / wavelength - 1) / (4 - 1)
            table.append(1 / ((1 - smooth) / factor + smooth))
    assert len(set(table)) > 2  # the blended band is reached
    tensors = tiny_tensors() | {"rope_freqs.weight": (np.array(table, np.float32), GGMLQuantizationType.F32)}
    scaling = load_config(convert(tmp_path, tensors)).rope_scaling
    assert (scaling.kind, scaling.factor) == ("llama3", factor)
    assert (scaling.low_freq_factor, scaling.high_freq_factor, scaling.original_context) == (1.0, 4.0, 8192)


@pytest.mark.parametrize(
    ("extra", "factor"),
    [
        ({"scaling.type": "linear", "scaling.factor": 2.5}, 2.5),
        ({"scaling.factor": 2.5}, 2.5),  # a factor without a type is linear
        ({"scale_linear": 4.0}, 4.0),  # as files of 2023 say it
        ({"scale_linear": 4.0, "scaling.factor": 2.5}, 2.5),
        ({"scaling.type": "none", "scaling.factor": 2.5}, None),
        ({"scaling.factor": 1.0, "scaling.attn_factor": 1.0}, None),
        ({"scaling.factor": 0.0}, None),
    ],
)
def test_linear_rotary_scaling_is_read_as_llama_cpp_reads_it(extra, factor, tmp_path):
    scaling = load_config(convert(tmp_path, extra={f"llama.rope.{key}": value for key, value in extra.items()})).rope_scaling
    assert (None if scaling is None else (scaling.kind, scaling.factor)) == (factor and ("linear", factor))


def test_a_window_makes_a_file_of_architecture_llama_a_mistral(tmp_path):
    """Rows of q and k are then put back as in any llama file: its logits are transformers' on the folder, beyond the window."""
    from transformers import AutoModelForCausalLM

    folder = convert(tmp_path, extra={"llama.attention.sliding_window": 20})
    assert load_config(folder).windows == (20, 20)
    assert_same_logits(folder, AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager"))
    plain = tmp_path / "plain"
    plain.mkdir()
    got, want = (load_file(each / "model.safetensors") for each in (folder, convert(plain)))
    np.testing.assert_array_equal(got["model.layers.0.self_attn.q_proj.weight"], want["model.layers.0.self_attn.q_proj.weight"])


def test_a_window_as_long_as_the_context_is_none(tmp_path):
    assert load_config(convert(tmp_path, extra={"llama.attention.sliding_window": 512})).windows is None


@pytest.mark.parametrize(("pre", "extra", "begins"), [
    ("llama-bpe", {}, True),
    ("llama-bpe", {"tokenizer.ggml.add_bos_token": False}, False),
    ("smollm", {}, False),
    ("smollm", {"tokenizer.ggml.add_bos_token": True}, True),
])  # fmt: skip
def test_a_llama3_file_that_says_nothing_begins_a_prompt_with_bos(pre, extra, begins, tmp_path):
    tokenizer = Tokenizer.from_folder(convert(tmp_path, pre=pre, extra=extra))
    assert tokenizer.prompt("the")[:1] == ([1] if begins else tokenizer.encode("the")[:1])


@pytest.mark.parametrize(("special", "ends"), [
    (["<|end_of_text|>", "<s>", "<|eot_id|>"], (0, 2)),
    (["<|endoftext|>", "<|im_start|>", "<|im_end|>"], (0, 2)),
    (["<|end_of_text|>", "<s>", "<other>"], (0,)),
])  # fmt: skip
def test_a_file_whose_eos_ends_the_text_stops_at_its_end_of_turn_too(special, ends, tmp_path, monkeypatch):
    monkeypatch.setattr(tiny_gguf, "SPECIAL", special)
    folder = convert(tmp_path, pre="llama-bpe", eos=0, eot=None)
    assert load_config(folder).eos_ids == ends
    assert Tokenizer.from_folder(folder).eos_ids == set(ends)


@pytest.mark.parametrize("pre", ["smollm", "gpt-2", "llama-bpe", "qwen2"])
def test_the_tokenizer_file_is_read_by_hf_tokenizers_and_round_trips(pre, tmp_path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(convert(tmp_path, pre=pre) / "tokenizer.json"))
    for text in TEXTS[:4]:
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.encode("<|im_end|>", add_special_tokens=False).ids == [2]


def test_smollm_splits_digits_before_anything_else_and_gpt2_does_not(tmp_path):
    from tokenizers import Tokenizer

    def pieces(pre):
        (tmp_path / pre).mkdir()
        return Tokenizer.from_file(str(convert(tmp_path / pre, pre=pre) / "tokenizer.json")).encode("a  12").tokens

    assert pieces("smollm") == ["a", "ĠĠ", "1", "2"]
    assert pieces("gpt-2") == ["a", "Ġ", "Ġ", "12"]


def test_a_bos_that_the_file_asks_for_is_put_before_the_text(tmp_path):
    from tokenizers import Tokenizer

    folder = convert(tmp_path, pre="llama-bpe", extra={"tokenizer.ggml.add_bos_token": True})
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    with_bos, without = tokenizer.encode("the").ids, tokenizer.encode("the", add_special_tokens=False).ids
    assert with_bos == [1, *without]


def test_the_chat_template_and_special_tokens_come_along(tmp_path):
    settings = json.loads((convert(tmp_path) / "tokenizer_config.json").read_text("utf-8"))
    assert settings["chat_template"] == TEMPLATE
    assert (settings["bos_token"], settings["eos_token"]) == ("<|im_start|>", "<|im_end|>")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"arch": "gemma2"}, "architecture 'gemma2'"),
        ({"pre": "deepseek-llm"}, "pre-tokenizer 'deepseek-llm'"),
        ({"model": "bert"}, "kind 'bert'"),
        ({"model": "llama"}, "without scores"),
        ({"extra": {"tokenizer.ggml.add_eos_token": True}}, "add_eos_token"),
        ({"extra": {"llama.rope.scaling.type": "linear"}}, "names no factor"),
        ({"extra": {"llama.rope.scaling.attn_factor": 1.5}}, "llama.rope.scaling.attn_factor to 1.5"),
        ({"extra": {"llama.rope.scaling.yarn_log_multiplier": 0.1}}, "yarn_log_multiplier"),
        ({"extra": {"llama.attention.causal": False}}, "llama.attention.causal to False"),
        ({"extra": {"llama.attention.scale": 0.5}}, "llama.attention.scale to 0.5"),
        ({"extra": {"llama.logit_scale": 0.5}}, "llama.logit_scale to 0.5"),
        ({"extra": {"llama.final_logit_softcapping": 30.0}}, "final_logit_softcapping"),
        ({"arch": "qwen2", "extra": {"qwen2.attention.sliding_window": 20}, "pre": "qwen2"}, "another architecture"),
        ({"extra": {"llama.expert_count": 8}}, "experts"),
        ({"extra": {"llama.rope.dimension_count": 8}}, "partial rotary"),
        ({"extra": {"split.count": 3}}, "several files"),
        ({"extra": {"llama.rope.scaling.type": "yarn"}}, "rotary scaling 'yarn'"),
    ],
)
def test_what_cannot_be_converted_is_refused_by_name(options, named, tmp_path):
    with pytest.raises(UnsupportedModel) as error:
        convert(tmp_path, **options)
    assert named in str(error.value) and "tiny.gguf" in str(error.value)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("name", ["weird", "weight", "blk.attn_q.weight", "blk.x.attn_q.weight", "blk.7.attn_q.weight",
                                  "blk.0.attn_q.scale", "blk.00.attn_q.weight", "output.bias"])  # fmt: skip
def test_an_odd_tensor_is_named_before_anything_is_written(name, tmp_path):
    odd = {name: (np.zeros((96, 96), np.float32), GGMLQuantizationType.F32)}
    with pytest.raises(UnsupportedModel, match=name):
        convert(tmp_path, tiny_tensors() | odd)
    assert not (tmp_path / "made").exists()


def test_a_missing_and_a_misshapen_tensor_are_named_before_anything_is_written(tmp_path):
    tensors = tiny_tensors()
    short = tensors["blk.0.ffn_norm.weight"]
    with pytest.raises(UnsupportedModel, match="lacks model.layers.1.mlp.up_proj.weight"):
        convert(tmp_path, {name: each for name, each in tensors.items() if name != "blk.1.ffn_up.weight"})
    with pytest.raises(UnsupportedModel, match="another shape .* blk.0.ffn_norm.weight"):
        convert(tmp_path, tensors | {"blk.0.ffn_norm.weight": (short[0][:-1], short[1])})


def test_a_rotary_table_and_a_factor_at_once_are_refused(tmp_path):
    table = {"rope_freqs.weight": (np.ones(HEAD_DIM // 2, dtype=np.float32), GGMLQuantizationType.F32)}
    with pytest.raises(UnsupportedModel, match="twice"):
        convert(tmp_path, tiny_tensors() | table, extra={"llama.rope.scaling.factor": 2.0})


def test_a_tensor_of_another_architecture_is_named(tmp_path):
    extra = {"blk.0.ssm_in.weight": (np.zeros((4, 32), np.float32), GGMLQuantizationType.F32)}
    with pytest.raises(UnsupportedModel, match="blk.0.ssm_in.weight"):
        convert(tmp_path, tiny_tensors() | extra)


def test_a_rotary_table_that_is_not_llama3s_is_refused(tmp_path):
    table = {"rope_freqs.weight": (np.linspace(1, 5, HEAD_DIM // 2, dtype=np.float32), GGMLQuantizationType.F32)}
    with pytest.raises(UnsupportedModel, match="rope_freqs"):
        convert(tmp_path, tiny_tensors() | table)


@pytest.mark.parametrize("content", [b"", b"no gguf, but long enough to look at", b"GGUF\3\0\0\0" + b"\xff" * 16])
def test_a_file_that_is_no_gguf_is_named(content, tmp_path):
    (tmp_path / "x.gguf").write_bytes(content)
    with pytest.raises(UnknownModel, match="x.gguf cannot be read as a GGUF"):
        convert_gguf(tmp_path / "x.gguf", tmp_path / "made")


def test_a_gguf_cut_short_is_named(tmp_path):
    file = write_gguf(tmp_path / "tiny.gguf", tiny_tensors())
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(UnknownModel, match="cannot be read"):
        convert_gguf(file, tmp_path / "made")


def test_an_interrupted_conversion_leaves_nothing_and_the_next_one_is_whole(tmp_path, monkeypatch):
    file = write_gguf(tmp_path / "tiny.gguf", tiny_tensors())
    whole = converter._expanded

    def interrupted(*args):
        for i, values in enumerate(whole(*args)):
            if i == 5:
                raise KeyboardInterrupt
            yield values

    monkeypatch.setattr(converter, "_expanded", interrupted)
    with pytest.raises(KeyboardInterrupt):
        convert_gguf(file, tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.gguf"]
    monkeypatch.undo()
    folder = convert_gguf(file, tmp_path / "made")
    load_weights(folder, load_config(folder), torch.float32, "cpu")


def test_a_full_disk_is_an_error_that_names_the_bytes_needed(tmp_path, monkeypatch):
    import shutil

    file = write_gguf(tmp_path / "tiny.gguf", tiny_tensors())
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1234))
    with pytest.raises(DownloadFailed, match=r"needs 16,\d\d\d,\d\d\d bytes .* 1,234 bytes are free"):
        convert_gguf(file, tmp_path / "made")


def test_a_second_conversion_keeps_the_folder_that_was_there_first(tmp_path):
    folder = convert(tmp_path)
    (folder / "mark").touch()
    convert_gguf(tmp_path / "tiny.gguf", folder)
    assert (folder / "mark").exists()


def test_the_default_models_weights_equal_what_transformers_reads_from_its_gguf(default_folder, hf_default_model):
    """Exact: both expand with the same library, and un-permuting only moves rows."""
    want = hf_default_model.state_dict()
    got = load_file(default_folder / "model.safetensors")
    assert got.keys() == want.keys() - {"lm_head.weight"}
    for name, values in got.items():
        assert torch.equal(torch.from_numpy(values), want[name]), name


def test_the_default_models_config_equals_the_model_card(default_folder):
    config = load_config(default_folder)
    assert (config.n_layers, config.width, config.ffn_width, config.vocab_size) == (30, 576, 1536, 49152)
    assert (config.n_heads, config.n_kv_heads, config.head_dim, config.context) == (9, 3, 64, 8192)
    assert (config.rope_theta, config.rms_eps, config.tied, config.n_params) == (100_000.0, 1e-5, True, 134_515_008)
    assert (config.bos_id, config.eos_ids) == (1, (2,))
