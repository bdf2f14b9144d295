"""Which right results earn their points: `credited(...)`.

Some probes have the same result whatever the seed: errors and edges must be so. Others have few different ones. Who has
seen a result can return it without computing anything, so one that comes up again for another seed earns its points
only beside a right one that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from llmcourse.checks import Probe
from llmcourse.checks.run import TAMPERED, Verdict, judge

UNCONFIRMED = "unconfirmed"
N_SEEDS = 12
_WHY = "right, but other inputs have this result too: it counts once another check of {} passes"


def is_repeated(probe: Probe, outcome: dict, seed: int, run: Callable[[Probe, int], dict]) -> bool:
    """Whether the reference's outcome for this seed is right for another of the next eleven, too. run(probe, seed)."""
    return any(judge(probe, outcome, run(probe, seed + step)).ok for step in range(1, N_SEEDS))


def credited(verdicts: list[Verdict], repeated: Collection[str]) -> list[Verdict]:
    """The verdicts of a submission, some of them without their points.

    repeated: ids of the probes whose result another seed has too (see is_repeated).
    """
    exercises = {v.probe.exercise for v in verdicts}
    confirmed = {v.probe.exercise for v in verdicts if v.ok and v.probe.id not in repeated}
    confirmed |= exercises - {v.probe.exercise for v in verdicts if v.probe.id not in repeated}
    tampered = {v.probe.exercise: v for v in verdicts if v.reason == TAMPERED}
    return [_credited(v, v.probe.exercise in confirmed, tampered.get(v.probe.exercise)) for v in verdicts]


def _credited(verdict: Verdict, confirmed: bool, tampered: Verdict | None) -> Verdict:
    if tampered:
        return Verdict(verdict.probe, TAMPERED, "" if verdict.probe.hidden else tampered.detail)
    if verdict.ok and not confirmed:
        return Verdict(verdict.probe, UNCONFIRMED, _WHY.format(verdict.probe.exercise))
    return verdict
