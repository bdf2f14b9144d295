"""Whole runs over the small course (tests/grade/lab): what is written, kept, graded anew and said."""

from __future__ import annotations

import csv
import json
import os
import threading

import pytest

from llmcourse.errors import CourseError
from llmcourse.grade.options import Options
from llmcourse.grade.run import grade
from tests.grade.answers import CORRECT, N_POINTS, notebook


@pytest.fixture
def class_folder(in_small_course, tmp_path):
    """Three submissions: all right, one exercise missing, one unscaled."""
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "ana.ipynb").write_text(notebook())
    (folder / "ben.ipynb").write_text(notebook(Bag=""))
    (folder / "cy.ipynb").write_text(
        notebook(scores="def scores(q, k):\n    return [sum(a * b for a, b in zip(q, one)) for one in k]")
    )
    return folder


def run(folder, **changes):
    return grade(Options((folder,), folder.parent / "out", "01", **changes))


def scores(graded) -> dict[str, float]:
    return {result["submission"]: result["score"] for result in graded.results}


def table(folder) -> dict[str, dict]:
    with open(folder.parent / "out" / "grades.csv", encoding="utf-8", newline="") as file:
        return {row["submission"]: row for row in csv.DictReader(file)}


def test_every_submission_gets_its_points_a_row_and_two_reports(class_folder):
    graded = run(class_folder, jobs=2)
    assert scores(graded) == {"ana": N_POINTS, "ben": N_POINTS - 3, "cy": N_POINTS - 3}
    assert {name: (row["status"], row["01.scores"]) for name, row in table(class_folder).items()} == {
        "ana": ("ok", "3"),
        "ben": ("problems", "3"),
        "cy": ("ok", "0"),
    }
    assert {file.name for file in (class_folder.parent / "out" / "reports").iterdir()} == {
        f"{name}.{kind}" for name in ("ana", "ben", "cy") for kind in ("html", "json")
    }


def test_the_known_mistake_is_told(class_folder):
    report = (
        json.loads((class_folder.parent / "out" / "reports" / "cy.json").read_text()) if run(class_folder) else None
    )
    assert {one["name"]: one["mistake"] for one in report["exercises"]} == {
        "twice": "",
        "scores": "It is not scaled.",
        "Bag": "",
    }


def test_the_same_seed_gives_the_same_results_and_another_one_other_inputs(class_folder):
    details = [
        [t["detail"] for r in run(class_folder, seed=seed, regrade=True).results for t in r["tests"]]
        for seed in (1, 1, 2)
    ]
    assert details[0] == details[1] != details[2]


def test_a_seed_is_drawn_recorded_and_used_again(class_folder):
    first, second = run(class_folder), run(class_folder, regrade=True)
    assert (
        first.record.seed
        == second.record.seed
        == json.loads((class_folder.parent / "out" / "run.json").read_text())["seed"]
    )


def test_a_second_run_grades_only_what_is_new_or_changed_and_shows_old_and_new(class_folder):
    run(class_folder)
    (class_folder / "ben.ipynb").write_text(notebook())
    (class_folder / "dan.ipynb").write_text(notebook(twice=""))
    graded = run(class_folder)
    assert graded.n_kept == 2
    assert [(r["submission"], r["previous"]["score"], r["score"]) for r in graded.changed] == [
        ("ben", N_POINTS - 3, N_POINTS)
    ]
    assert {name: row["previous_score"] for name, row in table(class_folder).items()} == {
        "ana": "10",
        "ben": "7",
        "cy": "7",
        "dan": "",
    }


def test_another_seed_grades_everything_anew(class_folder):
    run(class_folder, seed=1)
    assert run(class_folder, seed=2).n_kept == 0


def test_a_regrade_grades_everything_anew_and_keeps_the_scores_before(class_folder):
    run(class_folder)
    graded = run(class_folder, regrade=True)
    assert graded.n_kept == 0 and [r["previous"]["score"] for r in graded.results] == [10, 7, 7]


class Stopped(KeyboardInterrupt):
    """Ctrl-C."""


def interrupted_after(n: int):
    def progress(what: str, n_done: int, n_all: int) -> None:
        if what == "grading" and n_done == n:
            raise Stopped

    return progress


def test_an_interrupted_run_keeps_what_is_done_and_the_next_one_goes_on(class_folder):
    options = Options((class_folder,), class_folder.parent / "out", "01")
    first = grade(options, interrupted_after(1))
    assert first.interrupted and len(table(class_folder)) == 1
    second = grade(options)
    assert not second.interrupted and second.n_kept == 1 and len(table(class_folder)) == 3


def test_an_interrupted_regrade_goes_on_as_one(class_folder):
    run(class_folder)
    options = Options((class_folder,), class_folder.parent / "out", "01", regrade=True)
    grade(options, interrupted_after(2))
    assert len(table(class_folder)) == 3
    assert run(class_folder).n_kept == 2


def test_an_interrupted_run_leaves_no_process_and_no_thread(class_folder):
    n_threads = threading.active_count()
    grade(Options((class_folder,), class_folder.parent / "out", "01"), interrupted_after(1))
    assert threading.active_count() == n_threads
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_roster_gives_a_row_to_everyone(class_folder):
    (class_folder.parent / "class.csv").write_text("id,name\nana,Ana\nzoe,Zoe\n")
    graded = run(class_folder, roster=class_folder.parent / "class.csv")
    assert {r["submission"]: (r["student"], r["status"]) for r in graded.results} == {
        "ana": ("ana", "ok"),
        "ben": (None, "problems"),
        "cy": (None, "ok"),
        "zoe": ("zoe", "missing"),
    }
    assert table(class_folder)["zoe"]["max"] == "10"


def test_answers_are_exported_as_plain_files(class_folder):
    run(class_folder, export=("answers", class_folder.parent / "answers"))
    files = {
        file.relative_to(class_folder.parent / "answers").as_posix()
        for file in (class_folder.parent / "answers").rglob("*.py")
    }
    assert files == {f"{who}/01_{name}.py" for who in ("ana", "ben", "cy") for name in CORRECT} - {"ben/01_Bag.py"}
    assert (class_folder.parent / "answers" / "ana" / "01_twice.py").read_text() == CORRECT["twice"] + "\n"


def test_an_instructors_own_probes_count_as_hidden_ones(class_folder):
    own = class_folder.parent / "own"
    own.mkdir()
    (own / "01.py").write_text(
        "from llmcourse.checks import probe\n@probe('twice', hint='My hint.', points=5)\n"
        "def my_probe(answer, rng):\n    return answer.twice([rng.integers(0, 9)])\n"
    )
    graded = run(class_folder, hidden_dir=own)
    mine = [t for t in graded.results[0]["tests"] if t["title"] == "my probe"]
    assert graded.results[0]["max"] == 15 and [(t["hidden"], t["points"]) for t in mine] == [(True, 5)]


def test_without_a_lesson_each_notebook_says_its_own(in_small_course, tmp_path):
    graded = grade(Options((in_small_course.root / "solutions",), tmp_path / "out"))
    assert {r["submission"]: (r["lesson"], r["score"], r["max"]) for r in graded.results} == {
        "01_small": ("01", N_POINTS, N_POINTS),
        "02_tensors": ("02", 3, 3),
    }


def test_a_notebook_that_does_not_say_its_lesson_is_no_honest_zero(class_folder):
    for file in class_folder.rglob("*.ipynb"):  # what it answers would say it
        file.write_text(notebook(twice="x = 1", scores="", Bag=""))
    graded = grade(Options((class_folder,), class_folder.parent / "out"))
    assert {r["status"] for r in graded.results} == {"other lesson"} and "--lesson" in graded.results[0]["reason"]


def test_what_forbids_names_is_found_and_named(class_folder):
    (class_folder / "ana.ipynb").write_text(
        notebook(twice="import operator\ndef twice(n):\n    return [operator.mul(2, x) for x in n]")
    )
    result = run(class_folder).results[0]
    assert (result["status"], result["score"]) == ("problems", N_POINTS - 4) and "operator.mul" in result["reason"]


STARTS_A_CHILD_AND_HANGS = """
import os, time
child = os.fork()
if not child:
    time.sleep(600)
    os._exit(0)
"""
WAITS_FOR_THE_CHILD = """
def twice(numbers):
    try:
        os.waitpid(child, 0)
    except ChildProcessError:
        pass  # an earlier call has met it
    return [n + n for n in numbers]
"""
HANGS = "while True: time.sleep(1)"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the answer forks")
def test_what_a_cell_started_ends_with_it_when_its_time_is_over(class_folder):
    (class_folder / "ana.ipynb").write_text(notebook(twice=WAITS_FOR_THE_CHILD, own=STARTS_A_CHILD_AND_HANGS + HANGS))
    assert run(class_folder, time_factor=0.2).results[0]["score"] == N_POINTS


def test_a_given_piece_of_the_same_lab_is_no_answer(class_folder):
    (class_folder / "ana.ipynb").write_text(
        notebook(twice="from llmcourse import given\ndef twice(n):\n    return given.twice(n)")
    )
    result = run(class_folder).results[0]
    assert result["score"] == N_POINTS - 4 and "llmcourse.given.lesson_01" in result["reason"]


def test_a_notebook_that_cannot_be_parsed_in_reasonable_time_or_memory_does_not_stop_the_others(class_folder):
    (class_folder / "ana.ipynb").write_text(notebook(twice="x = " + "(" * 50_000 + ")" * 50_000))
    (class_folder / "ben.ipynb").write_text(notebook(twice="x = " + "+".join(["1"] * 200_000)))
    (class_folder / "huge.ipynb").write_text(notebook(twice="#" * 3_000_000))
    graded = run(class_folder)
    assert scores(graded)["cy"] == N_POINTS - 3 and len(graded.results) == 4
    assert {r["submission"]: r["status"] for r in graded.results}["huge"] == "unreadable"


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"jobs": 0}, "--jobs"),
        ({"time_factor": 0.0}, "--time-factor"),
        ({"isolation": "none"}, "auto, namespace"),
        ({"export": ("grades", None)}, "no export"),
    ],
)
def test_options_that_make_no_sense_are_refused(class_folder, changes, said):
    with pytest.raises(CourseError, match=said):
        run(class_folder, **changes)
