"""Your code in the engine: a folder of labs as a table of parts, and an account of which stages are yours.

    mine = load_mine()                       # your work folder
    Engine(parts=mine.parts).generate("…")
    print(mine)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path

from llmcourse.errors import CourseError, StageFailed, UnreadableNotebook
from llmcourse.ops import STAGES, Parts, default_parts

from .adapters import LEARNER_STAGES, Stage
from .checking import Checked, check_lab
from .course import course, work_folder
from .examine import Examined

YOURS, REFERENCE, FAILING = "yours", "reference", "yours, but failing"


@dataclass(frozen=True)
class StageUse:
    """One stage of a run: whose code it was, how often it was called, and why it was not the learner's (may be "")."""

    stage: str
    owner: str
    calls: int
    reason: str = ""


class Mine:
    """A learner's answers, checked and put into a table of parts.

    Stages that are unfinished, or that fail their visible checks, are the engine's own. `parts` goes to
    `Engine(parts=…)`; `uses()` tells, at any time, what was called how often.
    """

    def __init__(self, base: Parts, labs: dict[str, Checked], unreadable: dict[str, str]):
        self._calls: Counter = Counter()
        self._owners: dict[str, tuple[str, str]] = {}
        parts, self._counted = base.counted()
        for stage in LEARNER_STAGES:
            owner, reason = _standing(stage, labs, unreadable)
            self._owners[stage.name] = owner, reason
            if owner == YOURS:
                answers = {name: labs[number].answers.objects[name] for number, name in map(_split, stage.exercises)}
                parts = stage.install(parts, answers, self._use(stage))
        self.parts = replace(parts, name="mine")

    def uses(self) -> list[StageUse]:
        """One entry per stage, in the order in which a token meets them."""
        unlocked = [StageUse(stage.name, owner, self._calls_of(stage, owner), reason)
                    for stage in LEARNER_STAGES for owner, reason in (self._owners[stage.name],)]
        known = {entry for stage in LEARNER_STAGES for entry in stage.replaces}
        return unlocked + [StageUse(name, REFERENCE, self._counted[name]) for name in STAGES if name not in known]

    def as_json(self) -> list[dict]:
        """`uses()` as plain data: stage, owner, calls, reason."""
        return [vars(use) for use in self.uses()]

    def __str__(self) -> str:
        rows = [f"{'stage':<16}{'whose':<20}{'calls':>8}"]
        for use in self.uses():
            calls = str(use.calls) if use.calls or use.owner != REFERENCE else ""
            rows.append(f"{use.stage:<16}{use.owner:<20}{calls:>8}" + (f"  {use.reason}" if use.reason else ""))
        return "\n".join(rows)

    def _calls_of(self, stage: Stage, owner: str) -> int:
        """Calls of the code that the row names: of the learner's, also where it fails and so is never called, or of ours."""
        return self._calls[stage.name] if owner != REFERENCE else sum(self._counted[entry] for entry in stage.replaces)

    def _use(self, stage: Stage) -> Callable[[str, Callable], Callable]:
        def use(exercise: str, function: Callable) -> Callable:
            @wraps(function, updated=())
            def call(*args, **kwargs):
                self._calls[stage.name] += 1
                try:
                    return function(*args, **kwargs)
                except Exception as error:
                    raise StageFailed(_what_happened(stage, exercise, error)) from error

            return call

        return use


def load_mine(folder: str | Path | None = None, device_type: str = "cpu") -> Mine:
    """Check the labs of a folder (default: the work folder) and put what passes into a table of parts.

    Raises CourseError for a folder that does not exist.
    """
    where = work_folder() if folder is None else Path(folder)
    if folder is not None and not where.exists():
        raise CourseError(f"there is no folder {where}; your labs are put there by `llmcourse open NN`")
    ours = course()
    wanted = {number for stage in LEARNER_STAGES for number, _ in map(_split, stage.exercises)}
    labs, unreadable = {}, {}
    for number in sorted(wanted & {name[:2] for name in ours.labs()}):
        try:
            labs[number] = check_lab(ours, number, where)
        except UnreadableNotebook as error:
            unreadable[number] = str(error)
    return Mine(default_parts(device_type), labs, unreadable)


def parts(folder: str | Path | None = None) -> Parts:
    """The table of `load_mine`, for `Engine(parts=…)`."""
    return load_mine(folder).parts


def run_mine(prompt, folder: str | Path | None = None, cache: str = "contiguous", **settings):
    """Run the default model on the learner's parts, print the text and whose stages made it, and return the Result.

    Args:
        prompt, settings: as for `Engine.generate`; greedy unless a temperature is given.
        cache: as for `Engine`.
    """
    from llmcourse.engine.engine import Engine

    mine = load_mine(folder)
    result = Engine(parts=mine.parts, cache=cache).generate(prompt, **{"temperature": 0, "max_tokens": 32, **settings})
    print(result.text, mine, sep="\n\n")
    return result


def _split(exercise: str) -> tuple[str, str]:
    number, name = exercise.split(".")
    return number, name


def _standing(stage: Stage, labs: dict[str, Checked], unreadable: dict[str, str]) -> tuple[str, str]:
    """Whose code a stage gets, and why not the learner's: silent where nothing was written yet."""
    examined: list[Examined] = []
    for number, name in map(_split, stage.exercises):
        if number in unreadable:
            return REFERENCE, unreadable[number]
        examined += [one for one in labs[number].exercises if one.exercise == name] if number in labs else []
    if len(examined) < len(stage.exercises) or all(one.unwritten for one in examined):
        return REFERENCE, ""
    for one in examined:
        if one.unwritten:
            return REFERENCE, f"{one.lesson}.{one.exercise} is not written yet"
        if not one.complete:
            first = next(verdict for verdict in one.verdicts if not verdict.ok)
            return FAILING, f"{one.lesson}.{one.exercise}, {first.probe.title}: {first.reason}"
    return YOURS, ""


def _what_happened(stage: Stage, exercise: str, error: Exception) -> str:
    step, line = error.__traceback__, 0
    while step:
        if "cell" in step.tb_frame.f_code.co_filename:
            line = step.tb_lineno
        step = step.tb_next
    where = f" at line {line} of its cell" if line else ""
    return (
        f"your {stage.name} ({exercise}) raised {type(error).__name__}{where}: {error}. "
        "Mend it, or run without --mine."
    )
