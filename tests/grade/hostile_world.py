"""One run of the grader over the hostile pack, and what was seen around it.

Everything lies in a folder that anybody may read and write, so that only the isolation protects it. Time limits are two
fifths of the usual ones; honest answers to lab 01 need a hundredth of those.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from llmcourse import checks
from llmcourse.grade.limits import Limits
from llmcourse.grade.options import Options
from llmcourse.grade.reference import graded_lesson
from llmcourse.grade.run import grade
from llmcourse.workbook.course import Course, course
from tests.grade import hashes, hostile_pack

LAB = "01_tokenizer"
SECRET, PORTS = "a-value-that-nobody-may-see", range(48631, 48636)
BOTH = ("namespace", "process")
OWN_PROBES = f'''
from llmcourse.checks import probe

@probe("decode", hint="The hint of an own probe.")
def own_probe_of_decode(answer, rng):
    return answer.decode([5, 7, 5], {{b"{SECRET}": 5, b"x": 7}})
'''


CASES = {case.name: case for case in hostile_pack.cases()}


@dataclass
class World:
    """One run of the grader over the pack, and what was seen around it."""

    folder: Path
    course: Course
    rows: dict[str, dict] = field(default_factory=dict)
    reports: dict[str, dict] = field(default_factory=dict)
    before: dict = field(default_factory=dict)
    after: dict = field(default_factory=dict)
    connections: list = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    isolation: str = ""

    @property
    def lesson(self) -> checks.Lesson:
        return graded_lesson(self.course, LAB, self.folder / "own" / "01.py")

    def page(self, name: str) -> str:
        return next(self.folder.glob(f"graded/reports/{name}.html")).read_text("utf-8")


def build(folder: Path) -> World:
    """The course's files, an instructor's own probes, and the submissions."""
    os.chmod(folder, 0o755)
    for part in ("exercises", "solutions"):
        (folder / "course" / part).mkdir(parents=True)
        shutil.copy(course().root / part / f"{LAB}.ipynb", folder / "course" / part)
    shutil.copytree(course().root / "authoring" / LAB, folder / "course" / "authoring" / LAB)
    (folder / "own").mkdir()
    (folder / "own" / "01.py").write_text(OWN_PROBES)
    hostile_pack.write(folder / "submissions")
    correct = (folder / "submissions" / "check_cells_deleted.ipynb").read_bytes()
    for name in ("aa_neighbour", "deleted_while_grading", "mm_neighbour", "zz_neighbour"):
        (folder / "submissions" / f"{name}.ipynb").write_bytes(correct)
    for path in [folder / "submissions", *(folder / "submissions").iterdir()]:
        os.chmod(path, 0o777 if path.is_dir() else 0o666)
    return World(folder, Course(folder / "course"))


def run(world: World, isolation: str) -> World:
    """Grade the pack and note what happened."""
    submissions, out = world.folder / "submissions", world.folder / "graded"
    for file in submissions.glob("*.ipynb"):
        if CASES.get(file.stem) and not may_run(CASES[file.stem].name, isolation):
            file.unlink()
    world.before = hashes.tree(world.folder, without=out)
    world.before.pop("submissions/deleted_while_grading.ipynb")

    def progress(what: str, n_done: int, n_all: int) -> None:
        (submissions / "deleted_while_grading.ipynb").unlink(missing_ok=True)

    world.isolation = grade(
        Options(
            (submissions,),
            out,
            "01",
            seed=20,
            jobs=2,
            time_factor=0.4,
            hidden_dir=world.folder / "own",
            isolation=isolation,
            limits=Limits(memory=1 << 30, processes=32),
        ),
        progress,
    ).record.isolation
    world.after = hashes.tree(world.folder, without=out)
    with open(out / "grades.csv", encoding="utf-8", newline="") as table:
        world.rows = {row["submission"]: row for row in csv.DictReader(table)}
    found = (json.loads(file.read_text("utf-8")) for file in (out / "reports").glob("*.json"))
    world.reports = {report["submission"]: report for report in found}
    world.left_behind = processes_of_workers()
    return world


def may_run(name: str, isolation: str) -> bool:
    """Whether the machine survives it: a fork bomb needs a limit on processes that does not hit the tests too."""
    return name != "fork_bomb" or isolation == "namespace" or os.geteuid() == 0


def processes_of_workers() -> list[str]:
    """Processes of our workers that still run, by their command lines: those below this process, and those that nobody
    waits for any more. What another grader on this machine is doing is its own business."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid != os.geteuid() and _runs_a_worker(process) and _keeper(process) in (1, os.getpid()):
                found.append((process / "cmdline").read_text(errors="replace"))
        except OSError:
            continue
    return found


def _runs_a_worker(process: Path) -> bool:
    return b"llmcourse.grade" in (process / "cmdline").read_bytes()


def _keeper(process: Path) -> int:
    """The nearest ancestor that is no worker itself."""
    while _runs_a_worker(process):
        status = (process / "status").read_text()
        parent = int(status.split("PPid:")[1].split()[0])
        if parent <= 1:
            return 1
        process = Path("/proc", str(parent))
    return int(process.name)


@contextmanager
def listening(world: World):
    """Note who connects to one of the ports of the loopback address that the attack tries."""
    for port in PORTS:
        try:
            server = socket.create_server(("127.0.0.1", port))
            break
        except OSError:
            continue

    def serve():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                world.connections.append(connection.recv(100))
                connection.sendall(SECRET.encode())

    threading.Thread(target=serve, daemon=True).start()
    yield
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def graded_pack(isolation: str) -> Iterator[World]:
    """The pack, graded in a tier."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the pack forks and kills: it needs Linux")
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder, pytest.MonkeyPatch.context() as patch:
        found = build(Path(folder))
        patch.setenv("LLMCOURSE_ROOT", str(found.course.root))
        patch.setenv("COURSE_SECRET", SECRET)
        with listening(found):
            run(found, isolation)
        yield found
