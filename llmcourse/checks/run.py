"""Run a probe (the untrusted half: `run_probe`) and judge what came of it (the trusted half: `judge`).

An outcome is a JSON object with "kind" and, for each kind:

    value        value (codec.encode of what the probe returned)
    not written  name (what is missing), by (the exercise that called it, or "")
    raised       error, message, line (in the learner's cell, or null), code (that line's text), inside (its function)
    timeout      seconds
    forbidden    name
    and, added by a grader: process died (signal), not run (why), tampered (name of what was changed)
"""

from __future__ import annotations

import io
import linecache
import traceback
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass

from llmcourse.errors import CourseError

from . import forbid
from .codec import encode, type_name
from .compare import OK, WRONG_SHAPE, WRONG_TYPE, WRONG_VALUES, compare
from .limits import TimeLimit, time_limit
from .probe import Answer, NotWritten, Probe
from .rng import Rng
from .settings import usual_settings

NOT_WRITTEN, RAISED, TIMEOUT, FORBIDDEN = "not written", "raised", "timeout", "forbidden"
HINTED = (WRONG_TYPE, WRONG_SHAPE, WRONG_VALUES, RAISED)
PROCESS_DIED, NOT_RUN, TAMPERED = "process died", "not run", "tampered"
RECURSION = RecursionError.__name__
MAX_MESSAGE = 200
MAX_PRINTED = 2_000


@dataclass(frozen=True)
class Verdict:
    """What one probe says about a submission.

    reason: "ok", "not written", "raised", "returned None", "wrong type", "wrong shape", "wrong values", "timeout",
        "forbidden", "process died" or "not run".
    detail: one line for the learner that may show inputs' results; not for hidden probes.
    """

    probe: Probe
    reason: str
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.reason == OK

    @property
    def points(self) -> float:
        """All of the probe's points, or none."""
        return self.probe.points if self.ok else 0

    @property
    def hint(self) -> str:
        """The probe's hint where the answer ran and did not do what is asked, otherwise empty."""
        return self.probe.hint if self.reason in HINTED else ""

    def as_json(self) -> dict:
        """The fields of a report: id, exercise, hidden, points, max, reason, detail ("" if hidden), hint."""
        probe = self.probe
        return {"id": probe.id, "exercise": probe.exercise, "hidden": probe.hidden, "points": self.points,
                "max": probe.points, "reason": self.reason, "detail": "" if probe.hidden else self.detail,
                "hint": self.hint}


def run_probe(probe: Probe, answer: Answer, seed: int, *, forbids: Iterable[str] = (), time_factor: float = 1.0,
              printed: io.TextIOBase | None = None) -> dict:
    """Run one probe on one submission; never raises, returns an outcome (see above) that is plain JSON.

    forbids: dotted names that the answer may not call.
    time_factor: scales the probe's seconds.
    printed: where what the answer prints goes (None: nowhere).
    """
    seconds = probe.seconds * time_factor
    try:
        with usual_settings(), time_limit(seconds), redirect_stdout(printed or Printed()):
            return _run(probe, answer, seed, forbids)
    except TimeLimit:
        return {"kind": TIMEOUT, "seconds": seconds}
    except BaseException as error:
        return _raised(error, answer, "")


def _run(probe: Probe, answer: Answer, seed: int, forbids: Iterable[str]) -> dict:
    called: list[str] = []
    try:
        with forbid.watch(forbids, answer, probe.exercise) as called:
            value = probe.function(answer, Rng(seed, probe.id))
            outcome = {"kind": "value", "value": encode(value)}
    except TimeLimit:
        raise
    except NotWritten as missing:
        return {"kind": NOT_WRITTEN, "name": str(missing), "by": ""}
    except NotImplementedError as error:
        return _unwritten(error, probe.exercise)
    except BaseException as error:
        outcome = _raised(error, answer, probe.exercise)
    if outcome.get("error") == RECURSION and called == [forbid.SWITCHED_OFF]:
        called = []  # Python itself drops a profile hook that meets the end of the stack; the answer did nothing
    return {"kind": FORBIDDEN, "name": called[0]} if called else outcome


class Printed(io.StringIO):
    """A sink for an answer's prints that keeps the first 2,000 characters."""

    def write(self, text: str) -> int:
        room = MAX_PRINTED - self.tell()
        if room > 0:
            super().write(str(text)[:room])
        return len(text)


def _unwritten(error: BaseException, exercise: str) -> dict:
    """A stub was reached: the exercise's own, or that of another function that it calls."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    names = [frame_name for frame_name in (_qualified(error), frame.name) if frame_name]
    name = names[0]
    mine = name.partition(".")[0] == exercise
    return {"kind": NOT_WRITTEN, "name": name, "by": "" if mine else exercise}


def _qualified(error: BaseException) -> str:
    """Name of the innermost function with its class, where the first argument is `self`."""
    last = error.__traceback__
    while last.tb_next:
        last = last.tb_next
    code = last.tb_frame.f_code
    owner = last.tb_frame.f_locals.get("self") if code.co_argcount and code.co_varnames[0] == "self" else None
    return f"{type(owner).__name__}.{code.co_name}" if owner is not None else code.co_name


def _raised(error: BaseException, answer: Answer, exercise: str) -> dict:
    try:
        message = str(error)[:MAX_MESSAGE]
    except Exception as second:
        message = f"(its message raised {type_name(type(second))})"
    line, code, inside = _place(error, answer)
    return {"kind": RAISED, "error": type_name(type(error)), "message": message, "line": line, "code": code,
            "inside": inside}


def _place(error: BaseException, answer: Answer) -> tuple[int | None, str, str]:
    """The deepest line of the learner's own code in the traceback: its number, its text, its function."""
    learner = answer.globals_of()
    place: tuple[int | None, str, str] = (None, "", "")
    step = error.__traceback__
    while step:
        frame = step.tb_frame
        if id(frame.f_globals) in learner:
            code = linecache.getline(frame.f_code.co_filename, step.tb_lineno, frame.f_globals).strip()
            place = (step.tb_lineno, code, frame.f_code.co_name)
        step = step.tb_next
    return place


def judge(probe: Probe, got: dict, want: dict) -> Verdict:
    """Compare a submission's outcome, which may be any JSON, with the reference's for the same seed.

    Raises CourseError when the reference itself has no value: then the course is broken, not the submission.
    """
    if want.get("kind") != "value":
        raise CourseError(f"the reference failed on probe {probe.id}: {want}; "
                          "this is the course's fault, please report it")
    kind = got.get("kind") if isinstance(got, dict) else None
    if kind == "value":
        found = compare(got.get("value"), want["value"], probe.tolerance)
        return Verdict(probe, OK) if found is None else Verdict(probe, found.status, str(found))
    if isinstance(kind, str) and kind in _SENTENCES:
        return Verdict(probe, kind, _SENTENCES[kind](got, probe))
    return Verdict(probe, PROCESS_DIED, "it sent something that is not a result")


def _say_raised(got: dict, probe: Probe) -> str:
    if got.get("error") == RECURSION:
        return (f"endless recursion: {got.get('inside') or probe.exercise} calls itself"
                f"{f' at line {line}' if (line := got.get('line')) else ''}, directly or through others, and never comes to "
                "an end: which input needs no further call?")
    where = f" at line {got.get('line')} of {got.get('inside')}" if got.get("line") else ""
    code = f": {str(got.get('code'))[:80]}" if got.get("code") else ""
    message = f" ({got.get('message')})" if got.get("message") else ""
    return f"{got.get('error')}{message}{where}{code}"


def _say_not_written(got: dict, probe: Probe) -> str:
    return f"{got.get('name')} is still to be written" + (f", and {got['by']} calls it" if got.get("by") else "")


_SENTENCES = {
    NOT_WRITTEN: _say_not_written,
    RAISED: _say_raised,
    TIMEOUT: lambda got, probe: f"stopped after {got.get('seconds')} seconds: is there a loop that never ends?",
    FORBIDDEN: lambda got, probe: f"{probe.exercise} may not call {got.get('name')} here: write that part yourself",
    PROCESS_DIED: lambda got, probe: f"the process died ({got.get('signal')})",
    NOT_RUN: lambda got, probe: str(got.get("why", "")),
    TAMPERED: lambda got, probe: "the submission changed code of the course or of a library, so its results count for nothing",
}

