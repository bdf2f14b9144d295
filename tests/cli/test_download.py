"""`llmcourse download`: which things are fetched, from where, and what is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmcourse.errors import DownloadFailed


@pytest.fixture
def fetched(monkeypatch):
    """Notes what would be fetched, in order."""
    calls = []

    def fetch(what, source=None, progress=True):
        calls.append((what, source))
        return Path("cache") / what

    monkeypatch.setattr("llmcourse.model.hub.download", fetch)
    return calls


@pytest.mark.parametrize(
    "arguments, names",
    [
        (["model"], ["model"]),
        (["text", "model"], ["text", "model"]),
        (["all"], ["model", "text", "gpt2-vocab"]),
        (["text", "all"], ["model", "text", "gpt2-vocab"]),
    ],
)
def test_each_thing_asked_for_is_fetched_once_and_its_place_is_printed(run, fetched, arguments, names):
    ran = run("download", *arguments)
    assert (ran.code, fetched) == (0, [(name, None) for name in names])
    assert ran.out.splitlines() == [f"{name}: {Path('cache') / name}" for name in names]


def test_from_names_the_source(run, fetched):
    run("download", "gpt2-vocab", "--from", "stick/file.whl")
    assert fetched == [("gpt2-vocab", "stick/file.whl")]


def test_a_failed_download_is_one_line(run, monkeypatch):
    def fail(*_args, **_settings):
        raise DownloadFailed("no network; use --from FILE")

    monkeypatch.setattr("llmcourse.model.hub.download", fail)
    ran = run("download", "text")
    assert (ran.code, ran.err) == (1, "error: no network; use --from FILE\n")


def test_a_file_that_does_not_exist_is_named(run, monkeypatch, tmp_path):
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path))
    ran = run("download", "text", "--from", "no/such/file.whl")
    assert ran.code == 1
    assert str(Path("no/such/file.whl")) in ran.err
