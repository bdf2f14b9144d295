"""Grade 200 submissions of lab 01, and compare with running their probes alone.

usage, in the project's folder: python -m benchmarks.grading [--submissions N] [--seed N]

Alone is one warm process that runs each submission's answers and the probes on them one after the other, with nothing
between it and them: no reading, no isolation, no comparing, no reports. The ratio is taken with one job, by the clock;
the whole run is timed with one job for each processor too.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import random
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

os.environ.update(
    {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
)  # as in a worker

from llmcourse import given  # noqa: E402
from llmcourse.checks import Answer, load_wrong  # noqa: E402
from llmcourse.checks.run import run_probe  # noqa: E402
from llmcourse.grade.options import Options  # noqa: E402
from llmcourse.grade.run import grade  # noqa: E402
from llmcourse.measure.machine import machine_facts  # noqa: E402
from llmcourse.workbook.answers import choose, execute  # noqa: E402
from llmcourse.workbook.course import course  # noqa: E402
from llmcourse.workbook.notebook import read_notebook  # noqa: E402

LESSON = "01"
RESULT = Path(__file__).parent / "results" / "grading.json"
P_CORRECT, P_WRONG = 0.7, 0.2  # the rest is not written


def main() -> None:
    """Make the submissions, time both sides, write results/grading.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    n_processors = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        files = make_submissions(work / "submissions", args.submissions, args.seed)
        probes_alone = alone(files, args.seed)
        one_job = graded(work, 1, args.seed)
        all_jobs = graded(work, n_processors, args.seed)
    overhead = one_job["wall_s"] / probes_alone["wall_s"]
    result = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine_facts(),
        "lesson": LESSON,
        "submissions": args.submissions,
        "jobs": n_processors,
        "probes_alone": probes_alone,
        "one_job": one_job,
        "all_jobs": all_jobs,
        "minutes": all_jobs["wall_s"] / 60,
        "overhead": overhead,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(f"{args.submissions} submissions: {result['minutes']:.2f} minutes with {n_processors} jobs")
    print(f"one job {one_job['wall_s']:.1f} s, the probes alone {probes_alone['wall_s']:.1f} s: overhead {overhead:.2f}×")


def make_submissions(folder: Path, n: int, seed: int) -> list[Path]:
    """n notebooks whose answers are each correct, one of the lab's known wrong ones, or not written."""
    rng, ours = random.Random(seed), course()
    folder.mkdir()
    solution = json.loads(ours.solution(LESSON).read_text("utf-8"))
    untouched = json.loads(ours.exercise(LESSON).read_text("utf-8"))
    wrong = wrong_sources()
    files = []
    for i in range(n):
        cells = []
        for solved, empty in zip(solution["cells"], untouched["cells"]):
            mark = solved["metadata"].get("llmcourse", {})
            cell, drawn = solved, rng.random()
            if mark.get("role") == "answer" and drawn > P_CORRECT:
                known = wrong.get(mark["exercise"])
                cell = {**empty, "source": rng.choice(known)} if known and drawn < P_CORRECT + P_WRONG else empty
            cells.append(cell)
        files.append(folder / f"student{i:03}.ipynb")
        files[-1].write_text(json.dumps({**solution, "cells": cells}), "utf-8")
    return files


def wrong_sources() -> dict[str, list[str]]:
    """The known wrong answers of each exercise, as a learner would have written them."""
    found: dict[str, list[str]] = {}
    sources = given.answers(LESSON).sources
    for one in load_wrong(course().wrong(LESSON)):
        if one.answer is None:
            source = sources[one.exercise].replace(one.old, one.new)
        else:
            text = inspect.getsource(one.answer)
            source = text[text.index("def " if inspect.isfunction(one.answer) else "class ") :].replace(
                one.name, one.exercise
            )
        found.setdefault(one.exercise, []).append(source)
    return found


def graded(work: Path, jobs: int, seed: int) -> dict:
    """A whole run, from the command to the table."""
    options = Options((work / "submissions",), work / f"graded{jobs}", LESSON, seed, jobs)
    started = time.perf_counter()
    done = grade(options)
    seconds = time.perf_counter() - started
    assert len(done.results) == len(list((work / "submissions").iterdir()))
    return {"wall_s": seconds, "isolation": done.record.isolation}


def alone(files: list[Path], seed: int) -> dict:
    """Running the answers and the probes on them in this process."""
    ours = course()
    lesson, lab = ours.lesson(LESSON), read_notebook(ours.exercise(LESSON))
    todo = [choose(read_notebook(file), lab, lesson.exercises)[0] for file in files]
    execute(todo[0])
    started = time.perf_counter()
    for pieces in todo:
        answers = execute(pieces)
        answer = Answer({name: answers.objects[name] for name in lesson.exercises if name in answers.objects})
        for probe in lesson.probes:
            run_probe(probe, answer, seed, forbids=given.forbidden(lesson, probe.exercise))
    return {"wall_s": time.perf_counter() - started}


if __name__ == "__main__":
    main()
