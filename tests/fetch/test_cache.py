"""The cache folder: where it is, one process at a time, and what killed runs leave."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import filelock
import pytest

from llmcourse.errors import DownloadFailed
from llmcourse.fetch import cache_dir, one_at_a_time, workspace


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path / "here"))
    assert cache_dir() == tmp_path / "here"


def test_without_a_word_it_is_in_the_users_cache_folder(monkeypatch):
    monkeypatch.delenv("LLMCOURSE_CACHE", raising=False)
    assert cache_dir().is_absolute() and "llmcourse" in cache_dir().parts


def test_a_cache_that_cannot_be_made_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(DownloadFailed, match="cannot be made.*set LLMCOURSE_CACHE"), workspace():
        pass


def test_leftovers_of_killed_runs_are_removed_after_a_day_and_not_before(monkeypatch, tmp_path):
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path))
    for name, age in ((".work-old", 25 * 3600), (".work-new", 23 * 3600), ("models", 99 * 3600)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    with workspace():
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [".work-new", "models"]


def test_two_processes_are_never_inside_at_once(tmp_path):
    """Each appends 'in', waits, appends 'out': any overlap would put two 'in' together."""
    log = tmp_path / "log"
    program = (
        "import sys, time\nfrom llmcourse.fetch import one_at_a_time\nfor _ in range(5):\n"
        "  with one_at_a_time('t'):\n"
        "    open(sys.argv[1], 'a').write('in '); time.sleep(0.02); open(sys.argv[1], 'a').write('out ')\n"
    )
    environment = {**os.environ, "LLMCOURSE_CACHE": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    runs = [subprocess.Popen([sys.executable, "-c", program, log], env=environment) for _ in range(2)]
    assert [run.wait(timeout=60) for run in runs] == [0, 0]
    assert log.read_text() == "in out " * 10


def test_a_file_system_without_locks_is_no_error(monkeypatch, tmp_path):
    def refuse(*args, **options):
        raise NotImplementedError("no locks here")

    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path))
    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    entered = False
    with one_at_a_time("t"):
        entered = True
    assert entered
