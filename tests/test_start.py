"""start.py: what it decides, what it says when something is wrong, and one real set-up of a tiny stand-in package.

Oracle: the exit codes and lines that the README promises. Nothing here touches the network or this checkout's `.venv`.
"""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

START = Path(__file__).resolve().parents[1] / "start.py"
NO_NETWORK_LOG = """\
WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError("HTTPSConnection(host='index')")'
ERROR: Could not find a version that satisfies the requirement torch>=2.6 (from llmcourse) (from versions: none)
ERROR: No matching distribution found for torch>=2.6
"""


@pytest.fixture
def start(tmp_path):
    """start.py, loaded from a folder of its own that has the files it reads."""
    shutil.copy(START, tmp_path)
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(START.parent / name, tmp_path)
    spec = importlib.util.spec_from_file_location("start", tmp_path / "start.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fake_venv(start):
    """A `.venv` with the files that start.py looks at, whose Python is this one."""
    program = start.program("python")
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    (start.VENV / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n")


def stamp(start, extras):
    start.STAMP.write_text(json.dumps({"key": start.install_key(), "extras": extras}))


def fails_with(start, monkeypatch, output, code=1):
    """Make every program that start.py runs fail with `output` on its standard error."""

    def call(command, stderr=None, **_):
        if stderr is not None:
            stderr.write(output.encode())
        return code

    monkeypatch.setattr(start.subprocess, "call", call)
    failed = SimpleNamespace(returncode=code, stdout=output.encode())
    monkeypatch.setattr(start.subprocess, "run", lambda *_, **__: failed)


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 6, 15), (3, 9, 18), (3, 14, 0)])
def test_a_wrong_python_is_told_which_one_to_use(start, version, monkeypatch):
    monkeypatch.setattr(start.shutil, "which", lambda name: name == "python3.12")
    with pytest.raises(start.SetupFailed, match=r"needs Python 3\.10 to 3\.13 .* run: python3\.12 start\.py"):
        start.check_python(version, 64)


@pytest.mark.parametrize("version", [(3, 10, 0), (3, 11, 7), (3, 13, 1)])
def test_a_supported_python_passes(start, version):
    assert start.check_python(version, 64) is None


def test_a_32_bit_python_is_refused(start):
    with pytest.raises(start.SetupFailed, match=r"\(32-bit\)"):
        start.check_python((3, 12, 1), 32)


def test_the_file_is_syntax_of_python_3_6():
    import ast

    ast.parse(START.read_text(encoding="utf-8"), feature_version=(3, 6))
    assert "from __future__ import annotations" not in START.read_text(encoding="utf-8")  # 3.6 has no such future


def test_nothing_to_do_starts_no_program(start, monkeypatch):
    fake_venv(start)
    stamp(start, ["lab", "test"])
    fails_with(start, monkeypatch, "a program was started")
    assert start.ensure_installed(["lab"]) is None


@pytest.mark.parametrize("change", ["pyproject", "constraints", "extras", "folder moved"])
def test_a_change_of_what_is_wanted_installs_again(start, monkeypatch, change):
    fake_venv(start)
    stamp(start, ["lab"])
    wanted = ["lab"]
    if change == "extras":
        wanted = ["test"]
    elif change == "folder moved":
        monkeypatch.setattr(start, "ROOT", start.ROOT / "moved")
        start.ROOT.mkdir()
        for name in ("pyproject.toml", "constraints.txt"):
            shutil.copy(START.parent / name, start.ROOT)
    else:
        file = start.ROOT / {"pyproject": "pyproject.toml", "constraints": "constraints.txt"}[change]
        file.write_text(file.read_text() + "\n# changed\n")
    installed = []
    monkeypatch.setattr(start, "pip_install", lambda extras: (start.UNFINISHED.touch(), installed.append(extras)))
    start.ensure_installed(wanted)
    assert installed == [sorted({"lab", *wanted})]
    start.ensure_installed(wanted)
    assert len(installed) == 1, "the second start has nothing to do"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda start: start.UNFINISHED.touch(), "did not finish"),
        (lambda start: (start.VENV / "pyvenv.cfg").write_text("home = /no/such/folder\n"), "Python is gone"),
        (lambda start: (start.VENV / "pyvenv.cfg").unlink(), "Python is gone"),
        (lambda start: start.program("python").unlink(), "Python is gone"),
        (lambda start: (shutil.rmtree(start.VENV), start.VENV.write_text("a file")), "Python is gone"),
    ],
)
def test_a_broken_venv_is_made_again(start, damage, reason):
    fake_venv(start)
    assert start.why_remake() is None
    damage(start)
    assert reason in start.why_remake()
    start.remove_venv()
    assert not os.path.lexists(start.VENV)


def test_a_venv_without_pip_or_of_another_python_is_made_again(start, monkeypatch):
    fake_venv(start)
    fails_with(start, monkeypatch, "No module named pip")
    assert start.why_remake() == "it is broken"
    monkeypatch.setattr(start.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=0, stdout=b"3.1\n"))
    assert "it has Python 3.1" in start.why_remake()


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (NO_NETWORK_LOG, "cannot reach the package index"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "is full"),
        ("ERROR: [WinError 112] There is not enough space on the disk", "is full"),
        (NO_NETWORK_LOG + "OSError: [Errno 28] No space left on device", "is full"),
        ("ERROR: No matching distribution found for torch==2.13.0", "no PyTorch for this machine"),
        ("ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied", "no permission"),
        ("WARNING: x\nERROR: Cannot install a and b\nhint: y", "failed: ERROR: Cannot install a and b"),
    ],
)
def test_a_failing_pip_is_one_line_with_the_way_out(start, monkeypatch, capsys, said, line):
    fake_venv(start)
    stamp(start, [])
    monkeypatch.setattr(start, "why_remake", lambda: None)
    fails_with(start, monkeypatch, said)
    assert start.main(["run", "x"]) == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("start.py: ") and line in last
    assert "start again" in last or "docs/install.md" in last


def test_without_network_the_venv_is_kept_and_after_a_full_disk_it_is_made_again(start, monkeypatch):
    fake_venv(start)
    for said, made_again in ((NO_NETWORK_LOG, False), ("Errno 28", True)):
        fails_with(start, monkeypatch, said)
        with pytest.raises(start.SetupFailed):
            start.pip_install(["lab"])
        assert start.UNFINISHED.exists() == made_again


def test_a_python_without_venv_names_the_package_to_install(start, monkeypatch):
    fails_with(start, monkeypatch, "The virtual environment was not created: ensurepip is not available.")
    with pytest.raises(start.SetupFailed, match=r"sudo apt install python3\.\d+-venv"):
        start.make_venv()


def test_too_little_disk_is_told_before_anything_is_made(start, monkeypatch):
    monkeypatch.setattr(start.shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    with pytest.raises(start.SetupFailed, match="2.5 GB"):
        start.make_venv()
    assert not start.VENV.exists()


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "is full"),
        (PermissionError(errno.EACCES, "Permission denied", "here"), "no permission to write in"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "llmcourse"), "and start again"),
    ],
)
def test_errors_of_the_operating_system_are_one_line(start, monkeypatch, capsys, problem, line):
    def fail(_):
        raise problem

    monkeypatch.setattr(start, "ensure_installed", fail)
    assert start.main([]) == 1
    assert line in capsys.readouterr().err


def test_ctrl_c_ends_with_130_and_leaves_the_venv_to_be_made_again(start, monkeypatch, capsys):
    fake_venv(start)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(start.subprocess, "call", interrupted)
    assert start.main(["run", "x"]) == 130
    assert "start it again" in capsys.readouterr().err
    assert start.why_remake() == "the last install did not finish"


def test_an_unknown_word_is_refused_with_the_words_that_exist(start, capsys):
    assert start.main(["generate", "Hello"]) == 2
    assert "start.py run generate" in capsys.readouterr().err


def test_without_internet_the_download_command_itself_still_runs(start, monkeypatch, capsys):
    monkeypatch.setattr(start, "ensure_installed", lambda _: None)
    started = []
    monkeypatch.setattr(start.subprocess, "call", lambda command, **_: started.append(command) or 1)
    monkeypatch.setattr(start, "call", lambda command, **_: started.append(command) or 0)
    assert start.main(["run", "download", "model", "--from", "file"]) == 0
    assert started == [[start.program("llmcourse"), "download", "model", "--from", "file"]]
    assert start.main([]) == 1
    assert "run download model --from FILE" in capsys.readouterr().err


def test_test_runs_pytest_and_nbval_and_fails_when_either_fails(start, monkeypatch):
    monkeypatch.setattr(start, "ensure_installed", lambda _: None)
    monkeypatch.setattr(start, "fetch", lambda _: None)
    (start.ROOT / "notebooks").mkdir()
    (start.ROOT / "exercises").mkdir()
    (start.ROOT / "notebooks" / "00.ipynb").touch()
    ran = []
    for codes in ([0, 0], [1, 0], [0, 1]):
        left = list(codes)
        monkeypatch.setattr(start, "call", lambda command, left=left, **_: ran.append(command) or left.pop(0))
        assert start.main(["test"]) == max(codes)
    assert ran[0][-1] == "tests"
    assert "--nbval-lax" in ran[1] and ran[1][-1] == "notebooks", "a folder without notebooks is not run"


def test_jupyterlab_shows_the_whole_folder_and_opens_the_first_lesson(start, monkeypatch):
    """Given as an argument, a notebook's own folder would be all that it shows."""
    monkeypatch.setattr(start, "ensure_installed", lambda _: None)
    monkeypatch.setattr(start, "fetch", lambda _: None)
    started, copies = [], []
    monkeypatch.setattr(start, "call", lambda command, **_: started.append(command) or 0)
    monkeypatch.setattr(start, "make_copies", lambda: copies.append(len(started)))
    assert start.main(["--port=9999"]) == 0
    assert copies == [0], "the learner's copies are made before JupyterLab starts"
    (start.ROOT / "notebooks").mkdir()
    (start.ROOT / start.FIRST_LESSON).touch()
    assert start.main([]) == 0
    without, command = ([str(one) for one in each] for each in started)
    assert f"--ServerApp.root_dir={start.ROOT}" in command and without[-1] == "--port=9999"
    assert "--LabApp.default_url=/lab/tree/notebooks/00_one_prompt.ipynb" in command
    assert not [one for one in command if one.endswith(".ipynb") and not one.startswith("--")]
    assert not [one for one in without if "default_url" in one]


@pytest.mark.parametrize("code, said", [(0, ""), (1, "could not be made (error: no room); the lessons open all the same")])
def test_the_copies_of_the_labs_are_made_in_silence_and_never_stop_the_start(start, monkeypatch, capsys, code, said):
    ran = []

    def run(command, **options):
        ran.append([str(part) for part in command])
        return subprocess.CompletedProcess(command, code, b"a line\nerror: no room\n")

    monkeypatch.setattr(start.subprocess, "run", run)
    start.make_copies()
    assert ran[0][1:] == ["open"] and said in (err := capsys.readouterr().err) and bool(err) == bool(code)


BACKEND = """
import pathlib, zipfile
HERE = pathlib.Path(__file__).resolve().parent
META = "Metadata-Version: 2.1\\nName: llmcourse\\nVersion: 0\\nProvides-Extra: lab\\n"
def build_editable(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(pathlib.Path(folder) / "llmcourse-0-py3-none-any.whl", "w") as wheel:
        info = "llmcourse-0.dist-info/"
        wheel.writestr("llmcourse.pth", str(HERE))
        wheel.writestr(info + "METADATA", META)
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "entry_points.txt", "[console_scripts]\\nllmcourse = tiny:main\\n")
        wheel.writestr(info + "RECORD", "")
    return "llmcourse-0-py3-none-any.whl"
"""
TINY = """
import os, sys
def main():
    if sys.argv[1] == "download":
        print("where it is now")
        print("fetched", sys.argv[2], file=sys.stderr)
        return 0
    print(sys.stdin.read() + os.getcwd())
    return 7
"""


def test_a_real_set_up_runs_the_program_and_keeps_stdout_clean(start, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (tmp_path / "constraints.txt").write_text("")
    (tmp_path / "backend.py").write_text(BACKEND)
    (tmp_path / "tiny.py").write_text(TINY)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def run():
        command = [sys.executable, str(tmp_path / "start.py"), "run", "show"]
        return subprocess.run(command, input="piped ", capture_output=True, text=True, cwd=elsewhere)

    first = run()
    assert (first.returncode, first.stdout) == (7, f"piped {elsewhere}\n"), first.stderr
    assert "installing" in first.stderr and "fetched model" in first.stderr
    second = run()
    assert (second.returncode, second.stdout) == (7, first.stdout)
    assert second.stderr == "fetched model\n", "the second start has nothing to install"
    start.program("python").unlink()
    third = run()
    assert "making .venv again: its Python is gone" in third.stderr
    assert (third.returncode, third.stdout) == (7, first.stdout)
