"""`llmcourse grade` as a command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llmcourse.grade.record import results_before
from tests.grade.answers import notebook

PROGRAM = [sys.executable, "-m", "llmcourse", "grade"]
ROOT = Path(__file__).parents[2]


def command(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8", cwd=ROOT)


@pytest.fixture
def class_folder(in_small_course, tmp_path):
    class_folder = tmp_path / "class"
    class_folder.mkdir()
    for name in ("ana", "ben"):
        (class_folder / f"{name}.ipynb").write_text(notebook())
    return class_folder


def test_it_exits_with_0_when_every_submission_has_a_row_whatever_it_did(class_folder):
    (class_folder / "cy.ipynb").write_text("not a notebook")
    (class_folder / "dan.ipynb").write_text(notebook(twice="import os\nos._exit(1)"))
    done = command(class_folder, "--lesson", "01", "-o", class_folder.parent / "out", "--time-factor", "0.4")
    assert done.returncode == 0, done.stderr
    assert "4 rows" in done.stdout and "1 unreadable" in done.stdout and "1 problems" in done.stdout


def test_it_says_which_scores_changed(class_folder):
    command(class_folder, "--lesson", "01", "-o", class_folder.parent / "out")
    (class_folder / "ben.ipynb").write_text(notebook(Bag=""))
    done = command(class_folder, "--lesson", "01", "-o", class_folder.parent / "out")
    assert "ben: 10 → 7 of 10" in done.stdout and "1 kept" in done.stdout


def test_the_process_tier_is_loud(class_folder):
    done = command(class_folder, "--lesson", "01", "-o", class_folder.parent / "out", "--isolation", "process")
    assert "WARNING: untrusted" in done.stdout


@pytest.mark.parametrize(
    "path, option, code, said",
    [
        ("absent", (), 1, "there is no"),
        (".", ("--lesson", "99"), 2, "no lab '99'"),
        (".", ("--isolation", "magic"), 1, "auto, namespace or process"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_an_exit_code_that_is_not_0(class_folder, path, option, code, said):
    done = command(class_folder / path, "-o", class_folder / "out", *option)
    assert done.returncode == code and said in done.stderr and done.stderr.count("\n") == 1


def test_without_out_it_is_a_usage_error(class_folder):
    assert command(class_folder).returncode == 2


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is sent as a signal")
def test_ctrl_c_ends_it_soon_and_the_same_command_goes_on(class_folder):
    for number in range(3):
        (class_folder / f"slow{number}.ipynb").write_text(notebook(twice="def twice(n):\n    while True: pass"))
    arguments = [
        class_folder,
        "--lesson",
        "01",
        "-o",
        class_folder.parent / "out",
        "--jobs",
        "1",
        "--time-factor",
        "0.2",
    ]
    running = subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
    )
    while len(results_before(class_folder.parent / "out")) < 2:
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    said, _ = running.communicate(timeout=60)
    assert running.returncode == 130 and "the same command goes on" in said
    n_done = len(results_before(class_folder.parent / "out"))
    assert 2 <= n_done < 5
    again = command(*arguments)
    assert again.returncode == 0 and "5 rows" in again.stdout and f"{n_done} kept" in again.stdout
