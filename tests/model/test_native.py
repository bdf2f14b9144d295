"""A GGUF's own bits: packed once, mapped later, checked by hash; what cannot be packed is loaded as floats, and says so."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("numba")

from gguf import GGMLQuantizationType

from llmcourse import Engine, SamplingParams
from llmcourse.batch import Batch, Chunk
from llmcourse.model.load import load_model
from llmcourse.ops import NUMBA, REFERENCE
from llmcourse.ops.numba import jit, native, packed_file, table
from tests.tiny_gguf import tiny_tensors, write_gguf

GREEDY = SamplingParams(max_tokens=12, temperature=0)


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    jit.machine_code_folder()  # stays where it is: nothing is compiled anew
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write(file, kind="Q4_1", outside="Q8_0", **options):
    """A whole small model with its linear weights in one kind of number, head and embedding in another."""
    tensors = tiny_tensors(**options)
    for name, (values, _) in tensors.items():
        if values.ndim == 2:
            tensors[name] = values, GGMLQuantizationType[outside if name.startswith(("token_embd", "output.")) else kind]
    return write_gguf(file, tensors, arch="qwen3" if options.get("qk_norm") else "llama")


@pytest.mark.parametrize(
    "kind, outside, options",
    [("Q4_1", "Q8_0", {}), ("Q4_1", "Q8_0", {"head": True}), ("Q4_1", "Q8_0", {"qk_norm": True}), ("Q4_0", "Q8_0", {}),
     ("Q8_0", "F16", {})],
)  # fmt: skip
def test_packed_weights_give_the_logits_of_the_expanded_file(tmp_path, cache_folder, kind, outside, options):
    """q and k rows in llama.cpp's order, norms of q and k, a head of its own. Oracle: the converted file, by the reference table;
    bound: 15 bits of each activation, 0.01 on average."""
    file = write(tmp_path / "small.gguf", kind, outside, **options)
    ids = list(range(3, 40))
    model = load_model(str(file), quant="native")
    engine = Engine(model)
    logits = logits_of(engine, ids)
    assert engine.parts is NUMBA and (logits - load_model(str(file), device="cpu")(ids, REFERENCE)).abs().mean() < 0.01


def logits_of(engine, ids):
    """Logits after each token, by the engine's own step and cache."""
    slot, _ = engine.cache.open(ids, len(ids))
    engine.cache.reserve(slot, len(ids))
    return engine.runner.compute(Batch.of([Chunk(ids, 0, slot, n_sample=len(ids))], engine.cache))


def test_the_second_time_the_tiles_are_mapped_and_nothing_is_packed(tmp_path, cache_folder, monkeypatch):
    file = write(tmp_path / "small.gguf")
    first = load_model(str(file), quant="native")
    monkeypatch.setattr(native, "_pack", lambda *_: pytest.fail("packed again"))
    second = load_model(str(file), quant="native")
    assert Engine(first).generate([5, 9], GREEDY).output_ids == Engine(second).generate([5, 9], GREEDY).output_ids
    assert not second.packed_weights.qkv.codes.flags.owndata


@pytest.mark.parametrize("damage", ["a byte", "the end", "another layout", "not ours"])
def test_a_damaged_file_of_tiles_is_not_used(tmp_path, cache_folder, damage, monkeypatch):
    file = write(tmp_path / "small.gguf")
    wanted = Engine(load_model(str(file), quant="native")).generate([5, 9], GREEDY).output_ids
    (tiles,) = cache_folder.glob("models/*/weights.tiles")
    content = bytearray(tiles.read_bytes())
    if damage == "a byte":
        content[-5000] ^= 1
    elif damage == "the end":
        del content[-4096:]
    elif damage == "not ours":
        content = bytearray(b"something else")
    else:
        monkeypatch.setattr(packed_file, "LAYOUT", packed_file.LAYOUT + 1)
    tiles.write_bytes(content)
    packed = []
    pack = native._pack
    monkeypatch.setattr(native, "_pack", lambda *args: packed.append(1) or pack(*args))
    assert Engine(load_model(str(file), quant="native")).generate([5, 9], GREEDY).output_ids == wanted
    assert packed == [1]


def test_a_file_that_changed_is_packed_again(tmp_path, cache_folder):
    ids = []
    for seed in (0, 1):
        file = write(tmp_path / "small.gguf", seed=seed)
        ids.append(Engine(load_model(str(file), quant="native")).generate([5, 9], GREEDY).output_ids)
    assert ids[0] != ids[1]


def test_a_kind_that_no_kernel_reads_is_loaded_as_floats_and_says_why(tmp_path, cache_folder, capsys):
    table.say_once.cache_clear()
    file = write(tmp_path / "small.gguf", kind="Q5_0")
    model = load_model(str(file), quant="native", device="cpu")
    assert model.dtype == torch.float32 and hasattr(model, "weights")
    assert "Q5_0" in capsys.readouterr().err


def test_without_numba_floats_are_loaded_and_a_line_says_why(tmp_path, cache_folder, capsys, monkeypatch):
    table.say_once.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "numba" else 1)
    model = load_model(str(write(tmp_path / "small.gguf")), quant="native", device="cpu")
    assert hasattr(model, "weights") and "numba is not installed" in capsys.readouterr().err


def test_a_quant_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="'int3' is not one of none, native"):
        load_model(quant="int3")


def test_a_tied_head_lies_in_the_file_once(tmp_path, cache_folder):
    load_model(str(write(tmp_path / "small.gguf")), quant="native")
    (tiles,) = cache_folder.glob("models/*/weights.tiles")
    weights = native.load_native(tmp_path / "small.gguf").packed_weights
    assert np.shares_memory(weights.embed.codes, weights.head.codes) and tiles.stat().st_size > weights.head.codes.nbytes
