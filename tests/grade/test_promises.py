"""What one submission can never do to the batch, to others or to secrets. Oracle: the promises in docs/instructors.md."""

from __future__ import annotations

import csv
import json
import os
import stat
import subprocess
import sys
import time

import pytest

from llmcourse.errors import CourseError
from llmcourse.grade import jobs, record, run
from llmcourse.grade.options import Options
from llmcourse.grade.record import locked
from llmcourse.grade.run import grade
from tests.grade.answers import CORRECT, N_POINTS, notebook

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pipes are found through Linux's warm workers")
DRIPS = """
import os, signal, stat, time
pipe = [f for f in range(3, 64) if os.path.exists(f"/proc/self/fd/{f}") and stat.S_ISFIFO(os.fstat(f).st_mode)][0]
def twice(numbers):
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    while True:
        os.write(pipe, b"y")
        time.sleep(0.001)
"""


@pytest.fixture
def class_folder(in_small_course, tmp_path):
    """One correct submission."""
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "ana.ipynb").write_text(notebook())
    return folder


def graded(folder, **changes) -> dict[str, dict]:
    done = grade(Options((folder,), folder.parent / "out", **{"lesson": "01", "seed": 3, **changes}))
    with open(folder.parent / "out" / "grades.csv", encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(done.results)
    return {result["submission"]: result for result in done.results}


def has_full_marks(rows: dict, name: str = "ana") -> bool:
    return (rows[name]["status"], rows[name]["score"]) == ("ok", N_POINTS)


def test_a_cell_that_answers_everything_and_is_huge_costs_only_its_own_row(class_folder):
    huge = "\n".join(CORRECT.values()) + f"\ntext = {chr(34)}{chr(0x10000) * 1_900_000}{chr(34)}\n"
    (class_folder / "aa_huge.ipynb").write_text(notebook(twice=huge, scores="", Bag=""), "utf-8")
    rows = graded(class_folder)
    assert rows["aa_huge"]["status"] == "unreadable" and "too much code" in rows["aa_huge"]["reason"]
    assert has_full_marks(rows)


@pytest.mark.skipif(os.name != "posix", reason="such paths are too long elsewhere")
def test_folders_a_thousand_deep_become_a_row_with_a_reason(class_folder):
    (class_folder / "mallory").mkdir()
    here = os.open(class_folder / "mallory", os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("a", dir_fd=here)
        below = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    rows = graded(class_folder)
    subprocess.run(["rm", "-rf", class_folder / "mallory"], check=True)  # pytest's own cleaning up would recurse too deep
    assert rows["mallory"]["status"] == "unreadable" and "50 deep" in rows["mallory"]["reason"]
    assert has_full_marks(rows)


def test_a_folder_that_may_not_be_read_becomes_a_row_with_a_reason(class_folder, monkeypatch):
    (class_folder / "mallory" / "x").mkdir(parents=True)
    real = os.scandir

    def refused(path):
        if str(path).endswith("x"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("llmcourse.grade.submissions.os.scandir", refused)  # root may read everything
    rows = graded(class_folder)
    assert rows["mallory"]["status"] == "unreadable" and "Permission denied" in rows["mallory"]["reason"]
    assert has_full_marks(rows)


def test_an_error_of_the_graders_own_on_one_submission_becomes_its_row(class_folder, monkeypatch):
    (class_folder / "ben.ipynb").write_text(notebook())
    real = jobs.GradedLab.grade

    def fails(lab, workers, name, read, stopped):
        if name == "ben.ipynb":
            raise RecursionError("a surprise")
        return real(lab, workers, name, read, stopped)

    monkeypatch.setattr(jobs.GradedLab, "grade", fails)
    rows = graded(class_folder)
    assert rows["ben"]["status"] == "problems" and "RecursionError: a surprise" in rows["ben"]["reason"]
    assert has_full_marks(rows)


@pytest.mark.parametrize("part", ["reader", "sorting"])
def test_an_error_while_reading_one_submission_becomes_its_row(class_folder, monkeypatch, part):
    (class_folder / "ben.ipynb").write_text(notebook())
    if part == "reader":
        owner, name = run.Reader, "read"
        fails_for = lambda arguments: arguments[1] == "ben.ipynb"  # noqa: E731
    else:
        owner, name = run._Run, "_sort"
        fails_for = lambda arguments: arguments[1].name == "ben"  # noqa: E731
    real = getattr(owner, name)

    def fails(*arguments):
        if fails_for(arguments):
            raise MemoryError
        return real(*arguments)

    monkeypatch.setattr(owner, name, fails)
    rows = graded(class_folder)
    assert rows["ben"]["status"] == "unreadable" and "MemoryError" in rows["ben"]["reason"] and has_full_marks(rows)


def test_a_disk_that_fills_up_costs_reports_but_not_the_table(class_folder, monkeypatch):
    reserved = []

    def full(file, text):
        if (class_folder.parent / "out" / ".reserve").exists():
            reserved.append(file.name)
            raise OSError(28, "No space left on device")
        return real(file, text)

    real = record.write_private
    monkeypatch.setattr("llmcourse.grade.report.write_private", full)
    monkeypatch.setattr("llmcourse.grade.record.write_json", lambda file, content: full(file, "") or None)
    monkeypatch.setattr(record.Record, "write", lambda self, out: None)
    done = grade(Options((class_folder,), class_folder.parent / "out", "01", seed=3))
    assert reserved == ["ana.html", "ana.json"] and has_full_marks({"ana": done.results[0]})
    assert "No space left" in done.warnings[0] and (class_folder.parent / "out" / "grades.csv").exists()
    assert not (class_folder.parent / "out" / ".reserve").exists()


@LINUX
def test_output_that_drips_does_not_make_a_submission_last_longer(class_folder):
    (class_folder / "ben.ipynb").write_text(notebook(twice=DRIPS))
    started = time.monotonic()
    rows = graded(class_folder, time_factor=0.1)
    n_probes = len(rows["ben"]["tests"])
    assert time.monotonic() - started < 60 and n_probes
    reasons = {test["reason"] for test in rows["ben"]["tests"] if test["exercise"] == "twice"}
    assert reasons <= {"timeout", "not run"} and has_full_marks(rows)


def test_all_time_of_a_submission_comes_out_of_one_budget(class_folder, monkeypatch):
    monkeypatch.setattr("llmcourse.grade.lab.BUDGET_SECONDS", 1.5)
    (class_folder / "ben.ipynb").write_text(notebook(twice="def twice(n):\n    while True: pass"))
    rows = graded(class_folder)
    details = [test["detail"] for test in rows["ben"]["tests"] if not test["hidden"] and test["reason"] == "not run"]
    assert details and all("1.5 s in all, is used up" in one for one in details)
    assert rows["ben"]["status"] == "problems"


def test_a_file_belongs_to_its_folders_owner_and_not_to_whose_name_it_has(class_folder):
    for path in ("alexandra/lab.ipynb", "bob/lab.ipynb", "bob/alexandra.ipynb"):
        (class_folder / path).parent.mkdir(exist_ok=True)
        (class_folder / path).write_text(notebook())
    (class_folder.parent / "roster.csv").write_text("id\nalexandra\nbob\n")
    rows = graded(class_folder, roster=class_folder.parent / "roster.csv")
    assert {name: row["student"] for name, row in rows.items()} == {
        "alexandra": "alexandra", "bob/lab": "bob", "bob/alexandra": "bob", "ana": None
    }  # fmt: skip


def test_a_submission_that_could_be_two_students_is_a_row_of_its_own_with_a_reason(class_folder):
    (class_folder / "ana-ben.ipynb").write_text(notebook())
    (class_folder.parent / "roster.csv").write_text("id\nana\nben\n")
    rows = graded(class_folder, roster=class_folder.parent / "roster.csv")
    assert (rows["ana-ben"]["student"], rows["ana-ben"]["status"]) == (None, "problems")
    assert "whose is it" in rows["ana-ben"]["reason"] and rows["ben"]["status"] == "missing" and has_full_marks(rows)


def test_a_second_grader_in_the_same_folder_is_refused(class_folder):
    with locked(class_folder.parent / "out"):
        with pytest.raises(CourseError, match="another `llmcourse grade`"):
            graded(class_folder)
    assert has_full_marks(graded(class_folder))


def test_another_lesson_into_a_folder_of_grades_is_refused_and_changes_nothing(class_folder):
    graded(class_folder)
    before = (class_folder.parent / "out" / "grades.csv").read_bytes()
    with pytest.raises(CourseError, match="holds grades of lesson 01"):
        graded(class_folder, lesson="02")
    assert (class_folder.parent / "out" / "grades.csv").read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="Windows has other rights")
def test_what_is_written_is_for_the_grader_alone(class_folder):
    graded(class_folder)
    files = [file for file in (class_folder.parent / "out").rglob("*") if file.is_file()]
    assert {file.name for file in files} >= {"grades.csv", "run.json", "ana.html", "ana.json"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_report_is_never_larger_than_a_megabyte(class_folder):
    broken = "\n".join(f"raise ValueError({chr(39)}{chr(0x202E) * 90}{chr(39)})" for _ in range(1))
    cells = json.loads(notebook())
    cells["cells"] += [{**cells["cells"][0], "source": broken} for _ in range(3000)]
    (class_folder / "ben.ipynb").write_text(json.dumps(cells))
    graded(class_folder)
    sizes = [file.stat().st_size for file in (class_folder.parent / "out" / "reports").glob("ben.*")]
    assert len(sizes) == 2 and max(sizes) < 1_000_000
