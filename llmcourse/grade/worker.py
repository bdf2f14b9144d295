"""The untrusted half: run a submission's answers and the probes on them, and write JSON lines.

    {"cell": 3}                           before each piece of the submission runs
    {"loaded": true, "problems": […]}     when all have run
    {"probe": id, "outcome": …, "tampered": name or ""}           after each probe, in the order asked for

The parent believes none of it: a line is data to compare with the reference's.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from llmcourse import checks, given
from llmcourse.checks import Answer, Lesson, Probe
from llmcourse.checks.run import TIMEOUT, run_probe
from llmcourse.workbook.answers import execute
from llmcourse.workbook.choosing import Snippet
from llmcourse.workbook.course import Course
from llmcourse.workbook.notebook import read_notebook

from .lazy_imports import import_late, warm_up
from .limits import Limits, set_limits
from .processes import descendants
from .replay import Player
from .seal import Seal


@dataclass(frozen=True)
class PreparedLab:
    """What every worker of one lab needs, imported once."""

    lesson: Lesson
    player: Player
    seal: Seal

    @staticmethod
    def load(config: dict) -> PreparedLab:
        """Import the lab's probes and what its import cells import, with replayed given pieces of its own.

        config: root (of the course), lesson (its full name), given (lessons whose given pieces are in use), secrets and
        modules (see replay), preload (modules).
        """
        course, name, player = Course(Path(config["root"])), config["lesson"], Player()
        player.install_modules(config["secrets"], config["modules"])
        for number in config["given"]:  # after the modules are hidden: an earlier lab may import one for its demonstrations
            given.answers(number)
        lab = read_notebook(course.exercise(name))
        player.install_given(name[:2], [one["name"] for one in lab.metadata["exercises"]])
        import_late()
        for module in config["preload"]:
            __import__(module)
        execute(Snippet("imports", cell.source, 0) for cell in lab.cells if cell.role == "imports")
        warm_up()
        return PreparedLab(course.lesson_named(name), player, Seal())

    def work(self, payload: bytes, results: int) -> None:
        """Do what a payload asks for, and write results to an open file."""
        wanted = json.loads(payload)
        send = _sender(results)
        lesson = self._with_private(wanted["private"])
        answers = execute(_announced(wanted["pieces"], send), file=wanted["file"], seconds=wanted["load_seconds"])
        if any(problem.error == TIMEOUT for problem in answers.problems):
            _end_children()
        send({"loaded": True, "problems": [problem.as_json() for problem in answers.problems]})
        sys.modules["__main__"] = answers.home  # where a kernel has what a notebook defines
        answer = Answer({name: answers.objects[name] for name in lesson.exercises if name in answers.objects})
        probes = {probe.id: probe for probe in lesson.probes}
        ordered = [probes[one] for one in wanted["probes"]]
        edges = {p.id for p in {p.exercise: p for p in ordered}.values()} | {  # the last and the first of each exercise
            p.id for p in {p.exercise: p for p in reversed(ordered)}.values()}
        for one in wanted["probes"]:
            self.player.start(wanted["calls"].get(one, []))
            outcome = self._run(lesson, probes[one], answer, wanted)
            if outcome["kind"] == TIMEOUT:
                _end_children()
            send({"probe": one, "outcome": outcome, "tampered": self.seal.broken() if one in edges else ""})

    def _run(self, lesson: Lesson, probe: Probe, answer: Answer, wanted: dict) -> dict:
        return run_probe(
            probe,
            answer,
            wanted["seed"],
            forbids=given.forbidden(lesson, probe.exercise),
            time_factor=wanted["time_factor"],
        )

    def _with_private(self, source: str) -> Lesson:
        """The lesson, with an instructor's private probes where they are asked for."""
        if not source:
            return self.lesson
        folder = Path(tempfile.mkdtemp(dir="."))
        file = folder / "private_probes.py"
        file.write_text(source, "utf-8")
        private = checks.load_lesson_file(file, self.lesson.number, self.lesson.name)
        shutil.rmtree(folder)  # with what Python compiled
        return self.lesson.with_probes(private.probes)


def _end_children() -> None:
    """Kill the processes that timed-out code has left: what they fill and compute would be charged to the next probe."""
    for pid in descendants([os.getpid()])[1:]:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue  # it ended meanwhile


def _announced(pieces: list[dict], send: Callable[[dict], None]) -> Iterator[Snippet]:
    for piece in pieces:
        send({"cell": piece["cell"]})
        yield Snippet(**piece)


def _sender(results: int) -> Callable[[dict], None]:
    """Writes one JSON line; a copy of the worker that an answer forked stops here instead of writing too."""
    me = os.getpid()

    def send(message: dict) -> None:
        if os.getpid() != me:
            os._exit(0)
        left = json.dumps(message).encode() + b"\n"
        while left:
            left = left[os.write(results, left) :]

    return send


def main() -> None:
    """A worker of its own process, where nothing can be forked: configuration and payload come on standard input."""
    config = json.loads(sys.stdin.buffer.readline())
    payload = sys.stdin.buffer.readline()
    results = os.dup(1)
    os.dup2(2, 1)
    if os.name == "posix":
        set_limits(Limits(**config["limits"]), config["cpu_seconds"], os.geteuid())
    PreparedLab.load(config["lab"]).work(payload, results)
    os._exit(0)
