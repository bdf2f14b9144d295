"""The parent's side of one submission's workers: deadlines, caps, and a new worker after a hang or a death.

supervise(workers, payload, probes, …) -> Supervised: every probe's outcome, whatever the submission does
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from llmcourse.checks import Probe
from llmcourse.checks.run import NOT_RUN, PROCESS_DIED, TAMPERED, TIMEOUT

from .child_process import Silent
from .printable import MAX_DETAIL, printable
from .workers import TooMuch

LOAD_SECONDS = 20.0
BUDGET_SECONDS = 180.0
GRACE_SECONDS = 1.0
TICK_SECONDS = 0.5
LOADS_PER_SUBMISSION = 3
MAX_STOPS = 3
MAX_PROBLEMS = 100
_USED_UP = "the time that one submission may take, {:g} s in all, is used up"
_NOT_A_RESULT = "it sent something that is not a result"


@dataclass
class Supervised:
    """outcomes and seconds by probe id; problems: cells that failed, {cell, error, message, line} each."""

    outcomes: dict[str, dict] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    problems: list[dict] = field(default_factory=list)


@dataclass(frozen=True)
class Stop:
    """Why a worker did not go on. how: "timeout", or how the process ended."""

    how: str

    def outcome(self, seconds: float) -> dict:
        """As a probe's outcome."""
        if self.how == TIMEOUT:
            return {"kind": TIMEOUT, "seconds": seconds}
        return {"kind": PROCESS_DIED, "signal": self.how}

    def problem(self, cell: int) -> dict:
        """As a cell's problem."""
        if self.how == TIMEOUT:
            return {
                "cell": cell,
                "error": TIMEOUT,
                "message": "it runs too long: is there a loop that never ends?",
                "line": 0,
            }
        return {"cell": cell, "error": PROCESS_DIED, "message": self.how, "line": 0}


class Budget:
    """The time that one submission may take in all: loading, probes, every new worker."""

    def __init__(self, seconds: float, used: float = 0.0):
        self.seconds, self.deadline = seconds, time.monotonic() + seconds - used

    def left(self) -> float:
        """Seconds, not below 0."""
        return max(self.deadline - time.monotonic(), 0.0)


def supervise(
    workers,
    payload: dict,
    probes: list[Probe],
    stopped: Callable[[], bool] = lambda: False,
    budget: Budget | None = None,
) -> Supervised:
    """Run these probes on one submission, in as many workers as it takes.

    workers: a ForkServer or a Spawner. payload: pieces, file, private, seed, time_factor, calls (see worker.py).
    stopped: asked before each new worker; True ends all with "not run". budget: what is left of the submission's time,
    None for all of it; where it ends, what has not run is "not run".
    After three hangs or deaths in one exercise the rest of it is not run.
    """
    found, left, pieces = Supervised(), list(probes), payload["pieces"]
    budget = budget or Budget(BUDGET_SECONDS * payload["time_factor"])
    n_loads_failed = 0
    while left and n_loads_failed < LOADS_PER_SUBMISSION and not stopped() and budget.left():
        one = _Session(workers, {**payload, "pieces": pieces}, left, found, stopped, budget)
        stop = one.run()
        if stop and one.loaded:
            hung = left[one.n_done]
            found.outcomes[hung.id] = stop.outcome(hung.seconds * payload["time_factor"])
        elif stop:
            n_loads_failed += 1
            found.problems.append(stop.problem(one.cell))
            one.slow.append(one.cell)
        for cell in one.slow:
            pieces = _without(pieces, cell)
        left = _to_go_on_with(probes, found)
    why = "the cells above do not run" if n_loads_failed else "stopped"
    if not budget.left():
        why = _USED_UP.format(budget.seconds)
    for probe in left:
        found.outcomes[probe.id] = {"kind": NOT_RUN, "why": why}
    return found


class _Session:
    """One worker's life."""

    def __init__(
        self,
        workers,
        payload: dict,
        probes: list[Probe],
        found: Supervised,
        stopped: Callable[[], bool],
        budget: Budget,
    ):
        self.probes, self.found, self.stopped, self.factor = probes, found, stopped, payload["time_factor"]
        self.budget = budget
        self.n_cells, self.load_seconds = len(payload["pieces"]), LOAD_SECONDS * payload["time_factor"]
        self.loaded, self.cell, self.n_done = False, 0, 0
        self.slow: list[int] = []
        cpu = 3 * self.load_seconds + sum(p.seconds * self.factor + GRACE_SECONDS for p in probes)
        wanted = {**payload, "probes": [p.id for p in probes], "load_seconds": self.load_seconds}
        self.worker = workers.start(wanted, cpu)

    def run(self) -> Stop | None:
        """None when it did all that it should, otherwise why not."""
        stop, wait = Stop(_NOT_A_RESULT), False
        try:
            self._load()
            self._probe()
            stop = None
        except Silent:
            stop = Stop(TIMEOUT)
        except TooMuch:
            stop = Stop("it sent more than it may")
        except EOFError:
            wait = True
        except (ValueError, RecursionError):
            pass  # as the stop says
        ended = self.worker.end(wait=wait)
        return Stop(ended) if wait else stop

    def _load(self) -> None:
        """Until all cells have run; each has the time for loading, all together three times as much."""
        deadline = time.monotonic() + 3 * self.load_seconds
        for _ in range(self.n_cells + 1):
            message = self._message(min(self.load_seconds, max(deadline - time.monotonic(), 0)) + GRACE_SECONDS)
            if "loaded" in message:
                self.loaded = True
                self._note_problems(message.get("problems"))
                return
            if type(message.get("cell")) is not int:
                raise ValueError
            self.cell = message["cell"]
        raise ValueError

    def _note_problems(self, problems: object) -> None:
        known = {(one["cell"], one["error"]) for one in self.found.problems}
        for one in problems[:MAX_PROBLEMS] if isinstance(problems, list) else []:
            tidy = _tidy(one)
            if (tidy["cell"], tidy["error"]) not in known:
                self.found.problems.append(tidy)
            if tidy["error"] == TIMEOUT:
                self.slow.append(tidy["cell"])

    def _probe(self) -> None:
        """Until all probes have run, or one exercise has hung too often."""
        for probe in self.probes:
            started = time.monotonic()
            message = self._message(probe.seconds * self.factor + GRACE_SECONDS)
            if message.get("probe") != probe.id or not isinstance(message.get("outcome"), dict):
                raise ValueError
            self.found.outcomes[probe.id] = _outcome(message)
            self.found.seconds[probe.id] = time.monotonic() - started
            self.n_done += 1
            if (
                message["outcome"].get("kind") == TIMEOUT
                and _n_stops(self.probes, self.found)[probe.exercise] >= MAX_STOPS
            ):
                return

    def _message(self, seconds: float) -> dict:
        line = self._line(time.monotonic() + min(seconds, self.budget.left()))
        if not line:
            raise EOFError
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError
        return message

    def _line(self, deadline: float) -> bytes:
        """The worker's next line; a run that is stopped waits no longer."""
        while True:
            left = deadline - time.monotonic()
            try:
                return self.worker.line(min(max(left, 0), TICK_SECONDS))
            except Silent:
                if left <= TICK_SECONDS or self.stopped():
                    raise


def _outcome(message: dict) -> dict:
    """What a probe gave, or that the worker's own code was changed."""
    changed = message.get("tampered")
    return {"kind": TAMPERED, "name": changed[:100]} if changed and isinstance(changed, str) else message["outcome"]


def _tidy(problem: object) -> dict:
    """A problem as it should be, whatever was sent."""
    given = problem if isinstance(problem, dict) else {}
    numbers = {
        key: given.get(key) if type(given.get(key)) is int and 0 <= given[key] < 10**9 else 0
        for key in ("cell", "line")
    }
    words = {key: given[key] if isinstance(given.get(key), str) else "" for key in ("error", "message")}
    return {**numbers, **{key: printable(text[:MAX_DETAIL])[:MAX_DETAIL] for key, text in words.items()}}


def _without(pieces: list[dict], cell: int) -> list[dict]:
    """Without what stopped a worker: only its definitions, or, where they were all that ran, nothing of it.

    Of cells that the learner added only the definitions are left of all: the time of one is used up.
    """
    if any(piece["cell"] == cell and piece.get("own") for piece in pieces):
        pieces = [{**piece, "only_definitions": True} if piece.get("own") and piece["cell"] != cell else piece for piece in pieces]
    kept = [piece for piece in pieces if piece["cell"] != cell or not piece["only_definitions"]]
    return [{**piece, "only_definitions": True} if piece["cell"] == cell else piece for piece in kept]


def _to_go_on_with(probes: list[Probe], found: Supervised) -> list[Probe]:
    """The probes without an outcome, less those of an exercise that has hung or died too often."""
    stops, left = _n_stops(probes, found), []
    for probe in probes:
        if probe.id in found.outcomes:
            continue
        if stops[probe.exercise] >= MAX_STOPS:
            found.outcomes[probe.id] = {
                "kind": NOT_RUN,
                "why": f"not run after this exercise hung or died {MAX_STOPS} times",
            }
        else:
            left.append(probe)
    return left


def _n_stops(probes: list[Probe], found: Supervised) -> Counter:
    """How often each exercise has hung or died."""
    return Counter(p.exercise for p in probes if found.outcomes.get(p.id, {}).get("kind") in (TIMEOUT, PROCESS_DIED))
