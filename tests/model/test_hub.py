"""Names of models: the default, folders, GGUF files, hub ids; and what is said where nothing is found."""

from __future__ import annotations

import os
import shutil

import huggingface_hub
import pytest

from llmcourse.errors import UnknownModel, UnsupportedModel
from llmcourse.model import hub
from llmcourse.model.hub import DEFAULT_MODEL, model_folder, shown_name, tokenizer_folder
from tests.tiny_gguf import tiny_tensors, write_gguf
from tests.tiny_models import write_tiny


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Plays the hub: a copy of a tiny model's folder for every id; remembers what it was asked for."""
    calls = []

    def snapshot(repo, **options):
        calls.append((repo, options))
        return str(tmp_path / "snapshot")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    return calls


def test_no_name_and_the_default_models_name_are_the_same_folder(default_folder):
    assert model_folder(DEFAULT_MODEL) == model_folder(None) == default_folder


def test_a_local_folder_is_taken_as_it_is(tmp_path):
    assert model_folder(tmp_path) == model_folder(str(tmp_path)) == tmp_path


def test_a_relative_folder_wins_over_a_hub_id(tmp_path, monkeypatch, asked):
    (tmp_path / "owner" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert model_folder("owner/name").resolve() == tmp_path / "owner" / "name"
    assert asked == []


def test_a_gguf_file_is_converted_once_into_the_cache(tmp_path, cache):
    file = write_gguf(tmp_path / "tiny.gguf", tiny_tensors())
    folder = model_folder(file)
    assert folder.parent == cache / "models"
    made = (folder / "config.json").stat().st_mtime_ns
    assert model_folder(str(file)) == folder
    assert (folder / "config.json").stat().st_mtime_ns == made


def test_a_changed_gguf_file_is_converted_again(tmp_path, cache):
    file = write_gguf(tmp_path / "tiny.gguf", tiny_tensors(seed=0))
    first = model_folder(file)
    write_gguf(file, tiny_tensors(seed=1))
    os.utime(file, ns=(1, 1))
    second = model_folder(file)
    assert second != first
    assert (second / "model.safetensors").read_bytes() != (first / "model.safetensors").read_bytes()


def test_two_gguf_files_of_one_name_are_two_models(tmp_path, cache):
    a, b = tmp_path / "a" / "tiny.gguf", tmp_path / "b" / "tiny.gguf"
    for file in (a, b):
        file.parent.mkdir()
    write_gguf(a, tiny_tensors())
    shutil.copy2(a, b)
    assert model_folder(a) != model_folder(b)


def test_a_hub_id_asks_for_safe_files_only(asked, tmp_path):
    assert model_folder("owner/name") == tmp_path / "snapshot"
    ((repo, options),) = asked
    assert repo == "owner/name"
    assert sorted(options["allow_patterns"]) == ["*.jinja", "*.json", "*.safetensors"]
    assert "consolidated*" in options["ignore_patterns"]


def test_a_tokenizer_from_the_hub_does_not_fetch_weights(asked):
    tokenizer_folder("owner/name")
    assert sorted(asked[0][1]["allow_patterns"]) == ["*.jinja", "*.json"]


def test_a_hub_model_in_the_hubs_own_cache_is_found_without_a_network(tmp_path, monkeypatch):
    """HF_HUB_OFFLINE is on in all tests; the cache is laid out by hand as huggingface_hub does."""
    repo = tmp_path / "models--owner--name"
    write_tiny(repo / "snapshots" / ("a" * 40), "llama-gqa")
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("a" * 40)
    real = huggingface_hub.snapshot_download
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *a, **o: real(*a, cache_dir=tmp_path, **o))
    assert model_folder("owner/name") == repo / "snapshots" / ("a" * 40)


def test_where_no_hub_can_be_reached_one_line_names_the_alternatives():
    with pytest.raises(UnknownModel) as error:
        model_folder("owner/model-that-is-nowhere")
    said = str(error.value)
    assert "\n" not in said
    assert all(part in said for part in ("owner/model-that-is-nowhere", "default model", "local folder", "HF_HOME"))


def test_a_broken_connection_is_the_same_line(monkeypatch):
    def fail(*args, **options):
        raise ConnectionError("reset by peer\nand more")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(UnknownModel, match=r"no hub can be reached \(reset by peer\)"):
        model_folder("owner/name")


@pytest.mark.parametrize("name", ["gpt5", "./missing", "/no/such/folder", "~/nothing-here", "missing.gguf", "a/b/c"])
def test_an_unknown_name_is_answered_with_what_works_and_asks_no_hub(name, asked):
    with pytest.raises(UnknownModel) as error:
        model_folder(name)
    assert repr(name) in str(error.value) and DEFAULT_MODEL in str(error.value) and ".gguf" in str(error.value)
    assert asked == []


def test_an_id_that_the_hub_calls_malformed_is_answered_with_what_works():
    with pytest.raises(UnknownModel, match="does not give out a model 'bad name/x y'.*What works"):
        model_folder("bad name/x y")


def test_a_gguf_that_cannot_be_converted_keeps_its_own_error(tmp_path, cache):
    with pytest.raises(UnsupportedModel, match="architecture 'gemma2'"):
        model_folder(write_gguf(tmp_path / "other.gguf", tiny_tensors(), arch="gemma2"))


def test_models_are_called_by_what_the_user_would_recognise(tmp_path):
    (tmp_path / "my-model").mkdir()
    assert shown_name(None) == DEFAULT_MODEL
    assert shown_name(tmp_path / "my-model") == "my-model"
    assert shown_name("some/where/tiny.gguf") == "tiny"
    assert shown_name("owner/name") == "owner/name"


def test_what_the_hub_module_promises_is_there():
    assert all(hasattr(hub, name) for name in hub.__all__)
