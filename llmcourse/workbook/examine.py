"""Run the probes of an exercise on an answer, compare with the reference, and find the known mistake that fits."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from llmcourse.checks import Answer, Lesson, Probe, Wrong
from llmcourse.checks.run import FORBIDDEN, NOT_RUN, NOT_WRITTEN, RAISED, TIMEOUT, Printed, Verdict, judge, run_probe
from llmcourse.errors import AuthoringError

from .blame import blame

VISIBLE_SEED = 0
DIAGNOSIS_SECONDS = 1.0
_A_RESULT = ("wrong values", "wrong type", "wrong shape", "returned None", RAISED)


@dataclass(frozen=True)
class Examined:
    """One exercise's verdicts, and what explains them.

    mistake: the known mistake that gives the same in every probe ("" if none does); way_out: text of the one hint that
        belongs to it. calls: a sentence about failing answers that this one calls. broken: why the answer's cell does not
        run. printed: what the answer printed.
    """

    lesson: str
    exercise: str
    verdicts: tuple[Verdict, ...]
    mistake: str = ""
    way_out: str = ""
    calls: str = ""
    broken: str = ""
    printed: str = ""

    @property
    def points(self) -> float:
        return sum(v.points for v in self.verdicts)

    @property
    def max_points(self) -> float:
        return sum(v.probe.points for v in self.verdicts)

    @property
    def complete(self) -> bool:
        """Every probe passed."""
        return all(v.ok for v in self.verdicts)

    @property
    def unwritten(self) -> bool:
        """Nothing was written: no probe got as far as an answer."""
        return not self.broken and all(v.reason == NOT_WRITTEN for v in self.verdicts)


def examine(lesson: Lesson, exercise: str, answer: Answer, reference: Answer, *, forbids: Iterable[str] = (),
            wrongs: Iterable[Wrong] = (), namespace: dict | None = None, source: str = "", seed: int = VISIBLE_SEED,
            hidden: bool = False) -> Examined:
    """Run an exercise's visible probes (all of them with hidden=True) on an answer, in this process; never raises for
    what the answer does.

    forbids: what the answer may not call.
    wrongs: known wrong answers; `namespace` and `source` are the reference's, for those that edit it.
    Raises AuthoringError when the exercise has no probes, CourseError when the reference fails.
    """
    probes = lesson.of(exercise, hidden=None if hidden else False)
    if not probes:
        raise AuthoringError(f"{lesson.number}.{exercise} has no probes: nothing would be checked")
    printed = Printed()
    outcomes, stopped = [], ""
    for probe in probes:
        if stopped:
            outcomes.append({"kind": NOT_RUN, "why": f"not run after the {stopped}"})
            continue
        outcome = run_probe(probe, answer, seed, forbids=forbids, printed=printed)
        stopped = _stops(outcome)
        outcomes.append(outcome)
    verdicts = tuple(judge(p, got, run_probe(p, reference, seed)) for p, got in zip(probes, outcomes))
    mistake = way_out = calls = ""
    if any(v.reason in _A_RESULT for v in verdicts):
        calls = blame(lesson, exercise, answer, reference, seed)
        known = [one for one in wrongs if one.exercise == exercise]
        others = [(one, reference.replaced(exercise, one.build(source, namespace or {}))) for one in known]
        found = _mistake(probes, outcomes, others, seed)
        mistake, way_out = (found.why, found.says) if found else ("", "")
    return Examined(lesson.number, exercise, verdicts, mistake, way_out, calls, printed=printed.getvalue())


def _stops(outcome: dict) -> str:
    """Why no further probe is run: one endless loop is enough to wait for, and a person may press stop."""
    if outcome["kind"] == TIMEOUT:
        return "timeout"
    return "interruption" if outcome["kind"] == RAISED and outcome["error"] == "KeyboardInterrupt" else ""


def _mistake(probes: tuple[Probe, ...], outcomes: list[dict], wrongs: list[tuple[Wrong, Answer]],
             seed: int) -> Wrong | None:
    """The known wrong answer that gives the same in every probe, None if none does."""
    started = time.monotonic()
    for one, answer in wrongs:
        if time.monotonic() - started > DIAGNOSIS_SECONDS:
            return None
        if all(_same(p, got, run_probe(p, answer, seed)) for p, got in zip(probes, outcomes)):
            return one
    return None


def _same(probe: Probe, got: dict, known: dict) -> bool:
    if known["kind"] == "value":
        return judge(probe, got, known).ok
    if known["kind"] != got["kind"] or got["kind"] in (TIMEOUT, FORBIDDEN):
        return False
    return (known.get("error"), known.get("message")) == (got.get("error"), got.get("message"))
