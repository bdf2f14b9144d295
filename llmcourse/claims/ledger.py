"""The ledger: which statements there are, and what measuring one gives."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from llmcourse.checks import LESSONS
from llmcourse.errors import CourseError

HOLDS, CORRECTED, FAILS = "holds", "holds with a correction", "does not hold here"


@dataclass(frozen=True)
class Found:
    """What a measurement gave.

    Args:
        measured: the numbers, in one line, with their units.
        verdict: HOLDS, CORRECTED or FAILS.
        why: the correction, or why it does not hold; "" where it holds.
    """

    measured: str
    verdict: str
    why: str = ""


@dataclass(frozen=True)
class Claim:
    """One statement of the article.

    Args:
        id: "C13".
        statement: what the article says, in our words.
        lessons: numbers of the lessons that test it, the first one to read first.
        expected: what must come out for the statement to hold.
        because: why the bound in `expected` is where it is. It is chosen before the measurement, for this reason.
        how: what is measured, and under which conditions.
    """

    id: str
    statement: str
    lessons: tuple[str, ...]
    expected: str
    because: str
    how: str
    measure: Callable[[], Found]

    def check(self) -> Finding:
        """Measure it now. Takes seconds; the slowest half a minute."""
        return Finding(self, self.measure())


@dataclass(frozen=True)
class Finding:
    """A statement and what was found on this machine."""

    claim: Claim
    found: Found

    def as_json(self) -> dict[str, str]:
        """id, statement, lesson, expected, because, measured, verdict, why, how; all texts."""
        claim, found = self.claim, self.found
        return {
            "id": claim.id, "statement": claim.statement, "lesson": ", ".join(claim.lessons), "expected": claim.expected,
            "because": claim.because, "measured": found.measured, "verdict": found.verdict, "why": found.why,
            "how": claim.how,
        }  # fmt: skip

    def __str__(self) -> str:
        why = f" ({self.found.why})" if self.found.why else ""
        return f"{self.claim.id}, {self.claim.statement}: {self.found.verdict}{why}. Measured: {self.found.measured}."


_LEDGER: dict[str, Claim] = {}


def claim(id: str, statement: str, *, expected: str, because: str, how: str, lessons: Iterable[str]) -> Callable:
    """Decorate the function that measures a statement and returns a `Found`."""

    def enter(measure: Callable[[], Found]) -> Callable[[], Found]:
        known = _LEDGER.get(id)
        if known and inspect.unwrap(known.measure).__module__ != measure.__module__:
            raise CourseError(f"{id} is in the ledger twice")
        _LEDGER[id] = Claim(id, statement, tuple(lessons), expected, because, how, measure)
        return measure

    return enter


def claims(ids: Iterable[str] = ()) -> list[Claim]:
    """The statements with these ids in the order asked for (upper or lower case), or all that have a lesson, by id.

    Raises CourseError naming an id that is not there.
    """
    for name in LESSONS.values():
        module = f"{__package__}.{name}"
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module)
    asked = [one.upper() for one in ids]
    unknown = [one for one in asked if one not in _LEDGER]
    if unknown:
        raise CourseError(f"no statement {', '.join(unknown)} in the ledger; it has: {', '.join(sorted(_LEDGER))}")
    return [_LEDGER[one] for one in asked or sorted(_LEDGER)]
