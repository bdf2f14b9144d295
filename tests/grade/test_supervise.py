"""The parent's side of a worker, against scripted ones. Oracle: the protocol in worker.py."""

from __future__ import annotations

import json

import pytest

from llmcourse.checks import Probe
from llmcourse.checks.probe import Tolerance
from llmcourse.grade.supervise import LOADS_PER_SUBMISSION, MAX_STOPS, supervise
from llmcourse.grade.child_process import Silent
from llmcourse.grade.workers import TooMuch

LOADED = {"loaded": True, "problems": []}
HANGS, DIES, TOO_MUCH = object(), object(), object()


def probes(exercise: str = "f", n: int = 3) -> list[Probe]:
    return [Probe("01", exercise, f"p{i}", len, 1, "hint", False, Tolerance(), 5.0) for i in range(n)]


def value(probe: str, kind: str = "value") -> dict:
    return {"probe": probe, "outcome": {"kind": kind, "value": 1}, "seconds": 0.1}


class Scripted:
    """A source of workers: each start takes the next script, a list of messages; notes the payloads it was given."""

    def __init__(self, *scripts: list):
        self.scripts, self.payloads = list(scripts), []

    def start(self, payload: dict, cpu_seconds: float) -> Scripted:
        self.payloads.append(payload)
        self.now = self.scripts.pop(0)
        return self

    def line(self, seconds: float) -> bytes:
        message = self.now.pop(0) if self.now else DIES
        if message is HANGS:
            self.now.insert(0, HANGS)
            raise Silent
        if message is TOO_MUCH:
            raise TooMuch
        return b"" if message is DIES else message if isinstance(message, bytes) else json.dumps(message).encode()

    def end(self, *, wait: bool = False) -> str:
        return "signal 9" if wait else "signal 15"


def supervised(workers: Scripted, n: int = 3, pieces: tuple = ()):
    return supervise(workers, {"pieces": list(pieces), "time_factor": 0.001}, probes(n=n))


def kinds(found) -> dict[str, str]:
    return {one.rpartition("/")[2]: outcome["kind"] for one, outcome in sorted(found.outcomes.items())}


def test_all_results_of_one_worker_are_taken():
    found = supervised(Scripted([LOADED, *(value(f"01.f/p{i}") for i in range(3))]))
    assert kinds(found) == {"p0": "value", "p1": "value", "p2": "value"}


@pytest.mark.parametrize("end, kind", [(HANGS, "timeout"), (DIES, "process died"), (TOO_MUCH, "process died")])
def test_after_a_hang_or_a_death_a_new_worker_goes_on_with_the_rest(end, kind):
    workers = Scripted([LOADED, value("01.f/p0"), end], [LOADED, value("01.f/p2")])
    assert kinds(supervised(workers)) == {"p0": "value", "p1": kind, "p2": "value"}
    assert workers.payloads[1]["probes"] == ["01.f/p2"]


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"[1]",
        b"{}",
        b'{"probe": "01.f/p2", "outcome": {}}',
        b'{"probe": "01.f/p0", "outcome": 3}',
        b'{"probe": ["01.f/p0"], "outcome": {}}',
        b"[" * 100_000,
        b'{"outcome": NaN}',
        b"\xff\xfe",
    ],
)
def test_a_line_that_is_no_result_counts_as_a_death(line):
    found = supervised(Scripted([LOADED, line], [LOADED, value("01.f/p1"), value("01.f/p2")]))
    assert kinds(found) == {"p0": "process died", "p1": "value", "p2": "value"}


def test_an_exercise_that_hangs_too_often_is_left_but_others_go_on():
    workers = Scripted(*([LOADED, HANGS] for _ in range(MAX_STOPS)), [LOADED, value("01.g/p0")])
    found = supervise(workers, {"pieces": [], "time_factor": 0.001}, probes("f", MAX_STOPS + 2) + probes("g", 1))
    assert [found.outcomes[f"01.f/p{i}"]["kind"] for i in range(MAX_STOPS + 2)] == ["timeout"] * MAX_STOPS + [
        "not run"
    ] * 2
    assert found.outcomes["01.g/p0"]["kind"] == "value"


def test_soft_timeouts_count_too():
    soft = [value(f"01.f/p{i}", "timeout") for i in range(MAX_STOPS)]
    found = supervised(Scripted([LOADED, *soft]), n=MAX_STOPS + 1)
    assert kinds(found)[f"p{MAX_STOPS}"] == "not run"


def piece(cell: int, only_definitions: bool = False) -> dict:
    return {"label": "", "source": "", "cell": cell, "only_definitions": only_definitions}


def test_a_cell_that_hangs_gives_its_definitions_only_and_then_nothing():
    workers = Scripted(
        [{"cell": 1}, {"cell": 2}, HANGS], [{"cell": 1}, {"cell": 2}, HANGS], [{"cell": 1}, LOADED, value("01.f/p0")]
    )
    found = supervised(workers, n=1, pieces=(piece(1), piece(2)))
    assert [[(one["cell"], one["only_definitions"]) for one in p["pieces"]] for p in workers.payloads] == [
        [(1, False), (2, False)],
        [(1, False), (2, True)],
        [(1, False)],
    ]
    assert kinds(found) == {"p0": "value"} and {one["cell"] for one in found.problems} == {2}


def test_a_submission_whose_cells_never_run_ends_with_not_run():
    workers = Scripted(*[[{"cell": i}, DIES] for i in range(LOADS_PER_SUBMISSION)])
    found = supervised(workers, n=2, pieces=tuple(piece(i) for i in range(9)))
    assert kinds(found) == {"p0": "not run", "p1": "not run"}


def test_a_worker_cannot_make_loading_last_by_announcing_cells_for_ever():
    endless = [{"cell": 1}] * 1000
    found = supervised(Scripted(*[list(endless) for _ in range(LOADS_PER_SUBMISSION)]), n=1, pieces=(piece(1),))
    assert kinds(found) == {"p0": "not run"}


@pytest.mark.parametrize(
    "problems", [None, 5, [None], [{"cell": "x", "error": ["y"], "message": 10**40, "line": -3}], [{"cell": 1e400}]]
)
def test_problems_of_any_kind_become_tidy_ones(problems):
    found = supervised(Scripted([{"loaded": True, "problems": problems}, value("01.f/p0")]), n=1)
    assert all(
        type(one["cell"]) is int and type(one["line"]) is int and isinstance(one["message"], str)
        for one in found.problems
    )


def test_a_stopped_run_starts_no_further_worker():
    found = supervise(Scripted(), {"pieces": [], "time_factor": 1}, probes(), stopped=lambda: True)
    assert set(kinds(found).values()) == {"not run"}
