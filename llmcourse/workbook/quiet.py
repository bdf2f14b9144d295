"""Whether a machine is quiet enough for its times to be its own: who else uses the processors, and what moved."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from statistics import mean
from typing import NamedTuple

import psutil  # comes with ipykernel

from llmcourse.errors import AuthoringError
from llmcourse.measure.machine import machine_facts

LIMIT_PERCENT = 10  # of all processors; with more, the slowest of a step's threads waits for somebody else
PATIENCE_S = 20
SAMPLE_S = 0.5
MOVED = 1.2  # times as long in one run as in another
SHORTEST_S = 0.5  # a cell that takes less is not compared
MOST_RUNS = 3
KEPT_FACTS = ("cpu", "cores", "ram_bytes", "python", "torch", "threads")


def others_percent(seconds: float = SAMPLE_S) -> float:
    """Percent of all processors that programs other than this one and its children use, over some seconds."""
    busy, mine = _busy_s(), _mine_s()
    before = time.monotonic()
    time.sleep(seconds)
    used = (_busy_s() - busy) - (_mine_s() - mine)
    return max(0.0, 100 * used / ((time.monotonic() - before) * (psutil.cpu_count() or 1)))


def wait_for_quiet(patience_s: float = PATIENCE_S) -> float:
    """Wait until others use less than the limit, at most `patience_s`; returns the percent that they use then."""
    end = time.monotonic() + patience_s
    while (now := others_percent()) > LIMIT_PERCENT and time.monotonic() < end:
        pass
    return now


class Watch:
    """`with Watch() as watch: …`; afterwards `watch.percent` is what others used meanwhile, on average."""

    def __enter__(self) -> Watch:
        self._samples: list[float] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error) -> None:
        self._done.set()
        self._thread.join()

    @property
    def percent(self) -> float:
        """Percent of all processors, the mean of all samples."""
        return mean(self._samples)

    def _look(self) -> None:
        while True:
            self._samples.append(others_percent())
            if self._done.is_set():
                return


def moved(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """The largest factor between two runs in the seconds of a cell, of those that take long enough; 1.0 where none does.

    first, second: cell id → seconds.
    """
    pairs = [(first[name], second[name]) for name in first if name in second]
    factors = [max(a, b) / min(a, b) for a, b in pairs if min(a, b) > 0 and max(a, b) >= SHORTEST_S]
    return max(factors, default=1.0)


class Run(NamedTuple):
    """A notebook that was executed. seconds: cell id → seconds; percent: of the processors, what others used meanwhile."""

    notebook: dict
    seconds: dict[str, float]
    percent: float


def run_watched(run: Callable[[], tuple[dict, dict[str, float]]], busy: bool) -> dict:
    """A notebook executed on a quiet machine, with the machine's facts in its metadata, and shown with its first cell.

    run: executes it once, and returns it with the seconds of its cells by id.
    busy: execute it once, whatever others do. Otherwise: wait for quiet; run it twice, and once more when a cell took
        longer in one run than in the other or others came in between; the quietest run is kept.

    Raises AuthoringError when it does not become quiet.
    """
    if not busy and (percent := wait_for_quiet()) > LIMIT_PERCENT:
        raise AuthoringError(f"other programs use {percent:.0f} % of the processors (more than {LIMIT_PERCENT} %), so the times "
                             "on the page would be theirs: wait for them, or build with --busy, which marks the page")
    runs: list[Run] = []
    while len(runs) < (1 if busy else MOST_RUNS) and not _settled(runs):
        with Watch() as watch:
            ran = run()
        runs.append(Run(*ran, watch.percent))
    best = min(runs, key=lambda one: one.percent)
    spread = min((moved(best.seconds, one.seconds) for one in runs if one is not best), default=1.0)
    known = machine_facts()
    facts = {name: known[name] for name in KEPT_FACTS}
    facts |= {"others_percent": round(best.percent, 1), "runs": len(runs), "spread": round(spread, 3)}
    best.notebook["metadata"]["llmcourse"]["machine"] = facts
    _show(best.notebook, sentence(facts))
    return best.notebook


def _settled(runs: list[Run]) -> bool:
    last_two = runs[-2:]
    return (len(last_two) == 2 and moved(last_two[0].seconds, last_two[1].seconds) <= MOVED
            and min(one.percent for one in last_two) <= LIMIT_PERCENT)


def _show(notebook: dict, line: str) -> None:
    """Put a line under the first code cell: among the outputs, so that sources and ids stay the same anywhere."""
    first = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    shown = {"output_type": "display_data", "metadata": {}, "data": {"text/markdown": line, "text/plain": line.replace("*", "")}}
    first["outputs"] = [*first["outputs"], shown]


def sentence(facts: Mapping) -> str:
    """One line for the reader of a page: on which machine it was made, and how quiet that was. Markdown."""
    runs = "1 run"
    if facts["runs"] > 1:
        runs = f"the quietest of {facts['runs']} runs, long cells alike within {100 * (facts['spread'] - 1):.0f} %"
    said = (f"The numbers on this page come from: {facts['cpu']}, {facts['cores']} cores, "
            f"{facts['ram_bytes'] / 1e9:.0f} GB; Python {facts['python']}, torch {facts['torch']}, {facts['threads']} threads; "
            f"{runs}; others used {facts['others_percent']:.0f} % of the processors")  # fmt: skip
    if facts["others_percent"] > LIMIT_PERCENT:
        return f"**Built on a busy machine: its times are not to be trusted.** *{said}.*"
    return f"*{said}.*"


def _busy_s() -> float:
    times = psutil.cpu_times()
    counted_twice_or_idle = ("idle", "iowait", "guest", "guest_nice")
    return sum(times) - sum(getattr(times, name, 0.0) for name in counted_twice_or_idle)


def _mine_s() -> float:
    """Processor seconds of this process and its descendants, ended children included."""
    me, total = psutil.Process(), 0.0
    for one in (me, *me.children(recursive=True)):
        try:
            total += sum(one.cpu_times()[:4])
        except psutil.Error:  # it has just ended; its parent counts it from now on
            continue
    return total
