"""What the course's own solutions give for one seed, in a trusted process of its own: `reference(...)`.

The parent compares submissions with it; nothing of it ever reaches a worker but the results of given pieces (replay).
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from llmcourse import checks, given
from llmcourse.checks import Answer, Lesson, Probe, load_wrong
from llmcourse.checks.run import run_probe
from llmcourse.errors import CourseError
from llmcourse.workbook.course import PACKAGE, Course
from llmcourse.workbook.notebook import read_notebook

from .credit import is_repeated
from .lazy_imports import import_late
from .child_process import run_trusted
from .replay import Recorder, inside
from .visible_files import secret_code

WRONG_TIME_FACTOR = 0.4
_PROBE_MODULES = (f"{PACKAGE.name}.checks.", f"{PACKAGE.name}_probes_")


@dataclass(frozen=True)
class Reference:
    """outcomes: of the solutions, by probe id; calls: what each probe called of the reference (see replay).

    repeated: ids of the probes whose result another seed has too (see credit).
    wrong: for each exercise, (the sentence about it, its outcomes) of every known wrong answer.
    lessons: earlier ones whose given pieces are in use; modules: names that the probes took of hidden modules.
    preload: modules worth importing before a fork.
    """

    outcomes: dict[str, dict]
    calls: dict[str, list]
    wrong: dict[str, list]
    lessons: list[str]
    modules: dict[str, dict]
    preload: list[str]
    repeated: list[str] = field(default_factory=list)


def reference(course: Course, name: str, private: Path | None, seed: int, time_factor: float) -> Reference:
    """Run all probes of a lab on its solutions and on its known wrong answers.

    name: "01_tokenizer". private: an instructor's file of further probes.
    Raises CourseError when a solution fails: then the course is broken.
    """
    request = {
        "root": str(course.root),
        "lesson": name,
        "private": str(private) if private else "",
        "seed": seed,
        "time_factor": time_factor,
    }
    return Reference(**run_trusted("llmcourse.grade.reference", request, str(course.root)))


def graded_lesson(course: Course, name: str, private: Path | None) -> Lesson:
    """The lab's probes and an instructor's own; raises AuthoringError where there are none."""
    lesson = course.lesson_named(name)
    if private:
        lesson = lesson.with_probes(checks.load_lesson_file(private, lesson.number, lesson.name).probes)
    if not lesson.probes:
        raise CourseError(f"lesson {name} has no probes: nothing would be graded")
    return lesson


def main() -> None:
    """The process: a request on standard input, a Reference as JSON on standard output."""
    answer_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a solution prints must not come between
    request = json.loads(sys.stdin.read())
    try:
        answer = vars(_compute(request))
    except CourseError as error:
        answer = {"error": str(error)}
    with answer_to:
        json.dump(answer, answer_to)


def _compute(request: dict) -> Reference:
    import_late()
    course, name = Course(Path(request["root"])), request["lesson"]
    loaded = given.answers(name[:2])
    solutions, recorder = given.answer(name[:2]), Recorder()
    recorder.install_given(name[:2], {one: loaded.objects[one] for one in loaded.sources})
    lesson = _recorded_lesson(recorder, course, name, Path(request["private"]) if request["private"] else None)
    outcomes, calls = {}, {}
    for probe in lesson.probes:
        recorder.start()
        outcomes[probe.id] = run_probe(probe, solutions, request["seed"], time_factor=request["time_factor"])
        calls[probe.id] = recorder.calls
        if outcomes[probe.id]["kind"] != "value":
            raise CourseError(
                f"the solution of {probe.id} fails: {outcomes[probe.id]}; this is the course's fault, please report it"
            )
    repeated = _repeated(lesson, outcomes, request["seed"], solutions, recorder)
    recorder.start()
    wrong = {exercise: _wrong_outcomes(course, lesson, exercise, request) for exercise in lesson.exercises}
    used = [
        lab[:2] for lab in course.labs() if lab[:2] < name[:2] and f"llmcourse.given.lesson_{lab[:2]}" in sys.modules
    ]
    return Reference(
        outcomes,
        {one: made for one, made in calls.items() if made},
        wrong,
        used,
        {module: names for module, names in recorder.names.items() if names},
        _preload(course, name, lesson, outcomes),
        repeated,
    )


def _repeated(lesson: Lesson, outcomes: dict[str, dict], seed: int, solutions: Answer, recorder: Recorder) -> list[str]:
    def run(probe: Probe, other: int) -> dict:
        recorder.start()
        return run_probe(probe, solutions, other)

    return [probe.id for probe in lesson.probes if is_repeated(probe, outcomes[probe.id], seed, run)]


def _preload(course: Course, name: str, lesson: Lesson, outcomes: dict[str, dict]) -> list[str]:
    """numpy and torch, where the lab or its probes name them or pass their arrays on."""
    texts = [file.read_text("utf-8") for file in sorted(lesson.files())] + [
        c.source for c in read_notebook(course.exercise(name)).cells
    ]
    texts.append(json.dumps(list(outcomes.values())))
    said = {"numpy": r'\bnumpy\b|\["array"', "torch": r'\btorch\b|\["tensor"|rng\.normal'}
    return [module for module, pattern in said.items() if any(re.search(pattern, text) for text in texts)]


def _recorded_lesson(recorder: Recorder, course: Course, name: str, private: Path | None) -> Lesson:
    """The lab, its probes imported once more with stand-ins for the hidden modules that they use."""
    before = set(sys.modules)
    lesson = graded_lesson(course, name, private)
    secrets = [module for _, module in secret_code(lesson) if module.startswith(f"{PACKAGE.name}.")]
    recorder.install_modules([module for module in sorted(sys.modules) if inside(module, secrets)])
    for module in [one for one in sys.modules if one not in before and one.startswith(_PROBE_MODULES)]:
        del sys.modules[module]
    return graded_lesson(course, name, private)


def _wrong_outcomes(course: Course, lesson: Lesson, exercise: str, request: dict) -> list:
    """Each known wrong answer's sentence and outcomes."""
    file = course.wrong(lesson.number)
    if not file.is_file():
        return []
    loaded, solutions = given.answers(lesson.number), given.answer(lesson.number)
    run = partial(run_probe, seed=request["seed"], time_factor=WRONG_TIME_FACTOR * request["time_factor"])
    found = []
    for one in load_wrong(file):
        if one.exercise == exercise:
            answer: Answer = solutions.replaced(exercise, one.build(loaded.sources[exercise], loaded.objects))
            found.append([one.why, {probe.id: run(probe, answer) for probe in lesson.of(exercise)}])
    return found
