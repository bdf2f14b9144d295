"""Building on a quiet machine: when a page is refused, repeated, marked. What others use is planted; times are typed."""

from __future__ import annotations

import json

import pytest

from llmcourse.errors import AuthoringError
from llmcourse.workbook import author, quiet
from llmcourse.workbook.quiet import LIMIT_PERCENT, moved, run_watched, sentence
from tests.fake_course import NAME

FACTS = {"cpu": "A processor", "cores": 2, "ram_bytes": 16e9, "python": "3.11", "torch": "2.13", "threads": 2,
         "others_percent": 3.0, "runs": 2, "spread": 1.04}  # fmt: skip


@pytest.fixture
def others(monkeypatch):
    """A list of the percents that others use, one for each look at them; the last one stays."""
    seen: list[float] = [0.0]
    monkeypatch.setattr(quiet, "others_percent", lambda *_: seen.pop(0) if len(seen) > 1 else seen[0])
    monkeypatch.setattr(quiet, "PATIENCE_S", 0)
    monkeypatch.setattr(quiet.wait_for_quiet, "__defaults__", (0,))
    return seen


def runs(*seconds: float):
    """A notebook that takes so long in one run after the other, and how often it ran."""
    ran: list[float] = []

    def run():
        ran.append(seconds[min(len(ran), len(seconds) - 1)])
        cell = {"cell_type": "code", "id": "a", "outputs": []}
        return {"cells": [cell], "metadata": {"llmcourse": {"run": len(ran)}}}, {"a": ran[-1]}

    return run, ran


def test_a_busy_machine_is_refused_before_anything_runs(others):
    others[:] = [LIMIT_PERCENT + 1.0]
    run, ran = runs(1.0)
    with pytest.raises(AuthoringError, match="--busy"):
        run_watched(run, busy=False)
    assert ran == []


@pytest.mark.parametrize("seconds, times", [((1.0, 1.1), 2), ((1.0, 1.3, 1.3), 3), ((1.0, 2.0, 4.0), 3)])
def test_what_moved_is_repeated_three_runs_at_most(others, seconds, times):
    run, ran = runs(*seconds)
    run_watched(run, busy=False)
    assert len(ran) == times


def test_the_quietest_run_is_kept_and_the_machine_described(others, monkeypatch):
    run, ran = runs(1.0, 1.5, 1.05)
    percents = iter([8.0, 50.0, 2.0])

    class Planted:
        percent = property(lambda self: self.used)

        def __enter__(self):
            self.used = next(percents)
            return self

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(quiet, "Watch", Planted)
    mark = run_watched(run, busy=False)["metadata"]["llmcourse"]
    assert (mark["run"], mark["machine"]["others_percent"], mark["machine"]["runs"]) == (3, 2.0, 3)
    assert mark["machine"]["spread"] == 1.05
    assert set(mark["machine"]) == set(FACTS)


def test_a_busy_page_is_built_in_one_run_and_marked(others):
    others[:] = [60.0]
    run, ran = runs(1.0)
    notebook = run_watched(run, busy=True)
    line = notebook["cells"][0]["outputs"][-1]["data"]["text/markdown"]
    assert len(ran) == 1 and line.startswith("**Built on a busy machine") and "60 % of the processors" in line


def test_a_quiet_page_says_where_its_numbers_come_from_without_a_mark():
    line = sentence(FACTS)
    assert "busy" not in line and "A processor, 2 cores, 16 GB" in line and "within 4 %" in line


def test_short_cells_do_not_count_as_moved():
    assert moved({"a": 0.01, "b": 2.0}, {"a": 0.4, "b": 2.2}) == pytest.approx(1.1)
    assert moved({"a": 0.01}, {"a": 0.02}) == 1.0


def test_the_percents_are_of_others_and_none_of_our_own(monkeypatch):
    """Two processors busy for one second of one, half of it ours: others used a quarter of the machine."""
    busy, mine, clock = iter([10.0, 11.0]), iter([5.0, 5.5]), iter([0.0, 1.0])
    monkeypatch.setattr(quiet, "_busy_s", lambda: next(busy))
    monkeypatch.setattr(quiet, "_mine_s", lambda: next(mine))
    monkeypatch.setattr(quiet.psutil, "cpu_count", lambda: 2)
    monkeypatch.setattr(quiet.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(quiet.time, "sleep", lambda seconds: None)
    assert quiet.others_percent() == pytest.approx(25.0)


def test_a_built_lesson_tells_its_machine_and_one_that_does_not_is_found(own_course):
    file = own_course.root / "notebooks" / f"{NAME}.ipynb"
    notebook = json.loads(file.read_text("utf-8"))
    assert set(notebook["metadata"]["llmcourse"]["machine"]) == set(FACTS)
    del notebook["metadata"]["llmcourse"]["machine"]
    file.write_text(json.dumps(notebook))
    assert author.check(root=own_course.root) == [f"notebooks/{NAME}.ipynb: it does not say on which machine its numbers were measured"]
