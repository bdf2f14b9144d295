"""The result of one submission: what its JSON file holds. The fields are fixed in docs/instructors.md."""

from __future__ import annotations

import re
from collections.abc import Iterable

from llmcourse import given
from llmcourse.checks import Lesson
from llmcourse.checks.forbid import COMPILER, SWITCHED_OFF
from llmcourse.checks.operators import NOT_DENSE
from llmcourse.checks.run import FORBIDDEN, NOT_RUN, NOT_WRITTEN, PROCESS_DIED, RAISED, TAMPERED, TIMEOUT, Verdict, judge
from llmcourse.errors import CourseError
from llmcourse.workbook.choosing import NO_CELL

from .credit import credited
from .printable import MAX_DETAIL, printable
from .reader import ReadNotebook
from .reference import Reference
from .replay import HiddenCode
from .supervise import Supervised

OK, PROBLEMS, UNREADABLE, OTHER_LESSON, MISSING = "ok", "problems", "unreadable", "other lesson", "missing"
HIDDEN_CODE = f"{HiddenCode.__module__}.{HiddenCode.__qualname__}"
MAX_LISTED, MAX_REASON = 100, 1000
_NOT_HONEST = (TAMPERED, TIMEOUT, PROCESS_DIED, NOT_RUN, FORBIDDEN)
_NO_ANSWER = ("SystemExit", "KeyboardInterrupt", "GeneratorExit", "MemoryError")
_A_RESULT = ("wrong values", "wrong type", "wrong shape", "returned None")
_IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError")


def without_score(status: str, reason: str, *, lesson: str = "", most: float | None = None) -> dict:
    """The result of what could not be graded. most: full marks, where they are known."""
    return {
        "lesson": lesson,
        "status": status,
        "reason": printable(reason)[:MAX_REASON],
        "score": 0.0,
        "max": most,
        "problems": [],
        "warnings": [],
        "flags": [],
        "exercises": [],
        "tests": [],
    }


def graded(lesson: Lesson, reference: Reference, read: ReadNotebook, supervised: Supervised) -> dict:
    """The result of a submission that ran, compared with the reference's."""
    verdicts = [_judge(lesson, probe, supervised.outcomes[probe.id], reference.outcomes[probe.id]) for probe in lesson.probes]
    verdicts = credited(verdicts, reference.repeated)
    tests = [_test(v, supervised.seconds.get(v.probe.id, 0.0)) for v in verdicts]
    exercises = [
        _exercise(name, [v for v in verdicts if v.probe.exercise == name], supervised, reference)
        for name in lesson.exercises
    ]
    hidden = [one for one in supervised.problems if one["error"] == HIDDEN_CODE]
    problems = sorted(
        (one for one in supervised.problems if one not in hidden), key=lambda one: not _is_import_failure(one, read)
    )
    warnings = [
        *map(printable, read.warnings),
        *(printable(f"cell {one['cell']} was left at line {one['line']}: {one['message']}") for one in hidden),
    ]
    reason = _reason(problems, verdicts, read, supervised)[:MAX_REASON]
    return {
        "lesson": lesson.number,
        "status": TAMPERED if any(v.reason == TAMPERED for v in verdicts) else PROBLEMS if reason else OK,
        "reason": reason,
        "score": sum(v.points for v in verdicts),
        "max": lesson.points(),
        "problems": problems,
        "warnings": warnings,
        "flags": [*read.flags, *_changed(supervised)],
        "exercises": exercises,
        "tests": tests,
    }


def _judge(lesson: Lesson, probe, got: dict, want: dict) -> Verdict:
    """The verdict, with nothing of a hidden probe's outcome in its words, and only the lab's own names as names."""
    verdict = judge(probe, got, want)
    if probe.hidden:
        return Verdict(probe, verdict.reason)
    detail = verdict.detail
    if verdict.reason == FORBIDDEN:
        known = [*given.forbidden(lesson, probe.exercise), SWITCHED_OFF, COMPILER, NOT_DENSE]
        name = str(got.get("name"))
        meant = [one for one in known if name == one or name.startswith(f"{one}.")]
        detail = judge(probe, {**got, "name": meant[0] if meant else "what it called"}, want).detail
    names = {str(got.get("name")).partition(".")[0], str(got.get("by") or probe.exercise)}
    if verdict.reason == NOT_WRITTEN and not names <= {*lesson.exercises}:
        detail = "something that it calls is still to be written"
    return Verdict(probe, verdict.reason, printable(detail[:MAX_DETAIL])[:MAX_DETAIL])


def _changed(supervised: Supervised) -> list[str]:
    """What of the course's code a submission changed, in an instructor's words."""
    names = [one.get("name") for one in supervised.outcomes.values() if one.get("kind") == TAMPERED]
    known = {name for name in names if isinstance(name, str) and re.fullmatch(r"[A-Za-z_][\w.]{0,99}", name)}
    return [f"changed while graded: {name}" for name in sorted(known)]


def _test(verdict: Verdict, seconds: float) -> dict:
    return {**verdict.as_json(), "title": verdict.probe.title, "seconds": round(seconds, 4)}


def _exercise(name: str, verdicts: list[Verdict], supervised: Supervised, reference: Reference) -> dict:
    mistake = ""
    if any(v.reason in _A_RESULT for v in verdicts):
        mistake = _known_mistake(verdicts, supervised, reference.wrong[name])
    return {
        "name": name,
        "score": sum(v.points for v in verdicts),
        "max": sum(v.probe.points for v in verdicts),
        "mistake": mistake,
    }


def _known_mistake(verdicts: list[Verdict], supervised: Supervised, wrong: Iterable) -> str:
    """The sentence about the known wrong answer whose results are the same in every probe, "" if there is none."""
    for why, outcomes in wrong:
        known = [v for v in verdicts if v.probe.id in outcomes]
        if known and all(_same(v.probe, supervised.outcomes[v.probe.id], outcomes[v.probe.id]) for v in known):
            return why
    return ""


def _same(probe, got: dict, known: dict) -> bool:
    if known["kind"] == "value":
        return judge(probe, got, known).ok
    return known["kind"] == got.get("kind") not in (TIMEOUT, FORBIDDEN) and known.get("error") == got.get("error")


def _is_import_failure(problem: dict, read: ReadNotebook) -> bool:
    return problem["error"] in _IMPORT_ERRORS or problem["cell"] == 0 or problem["cell"] in read.import_cells


def _reason(problems: list[dict], verdicts: list[Verdict], read: ReadNotebook, supervised: Supervised) -> str:
    """The first thing that is not an honest right or wrong, "" if there is none: it makes the status "problems"."""
    if problems:
        first = problems[0]
        return printable(f"cell {first['cell']}, line {first['line']}: {first['error']}: {first['message']}")
    if not read.n_cells:
        return "the notebook has no code"
    deleted = [one for one in read.warnings if one.startswith(NO_CELL)]
    if deleted:
        return printable(deleted[0])
    for verdict in verdicts:
        outcome = supervised.outcomes[verdict.probe.id]
        ended = outcome.get("kind") == RAISED and outcome.get("error") in _NO_ANSWER
        if verdict.reason in _NOT_HONEST or ended:
            said = verdict.detail  # "" for a hidden probe, of which only the kind is told
            return f"{verdict.probe.exercise}: {verdict.reason}" + (f": {said}" if said else "")
    return ""


def bounded(result: dict) -> dict:
    """The result, short enough that a report of it is below 1 MB."""
    problems, warnings = result["problems"], result["warnings"]
    if len(problems) <= MAX_LISTED and len(warnings) <= MAX_LISTED and all(len(one) <= MAX_DETAIL for one in warnings):
        return result
    n_more = max(len(problems) - MAX_LISTED, 0) + max(len(warnings) - MAX_LISTED, 0)
    shown = [one if len(one) <= MAX_DETAIL else one[:MAX_DETAIL] + "…" for one in warnings[:MAX_LISTED]]
    said = [*shown, *([f"and {n_more:,} more"] if n_more else [])]
    return {**result, "problems": problems[:MAX_LISTED], "warnings": said}


def check_reference(lesson: Lesson, reference: Reference) -> None:
    """Raise CourseError unless the reference answers every probe: before any submission is run."""
    missing = [probe.id for probe in lesson.probes if probe.id not in reference.outcomes]
    if missing:
        raise CourseError(f"the solutions give no result for {', '.join(missing)}; please report it")
