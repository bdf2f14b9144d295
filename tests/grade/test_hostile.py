"""The hostile pack, graded in both tiers beside honest neighbours. Oracle: what each source in hostile_sources/ says of its row.

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
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from llmcourse import checks
from llmcourse.grade.detect import UNTRUSTED
from llmcourse.grade.limits import Limits
from llmcourse.grade.reference import graded_lesson
from llmcourse.grade.run import Options, grade
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

    world.isolation = grade(Options((submissions,), out, "01", seed=20, jobs=2, time_factor=0.4, hidden_dir=world.folder / "own",
                                    isolation=isolation, limits=Limits(memory=1 << 30, processes=32)), progress).record.isolation
    world.after = hashes.tree(world.folder, without=out)
    with open(out / "grades.csv", encoding="utf-8", newline="") as table:
        world.rows = {row["submission"]: row for row in csv.DictReader(table)}
    found = (json.loads(file.read_text("utf-8")) for file in (out / "reports").glob("*.json"))
    world.reports = {report["submission"]: report for report in found}
    world.left_behind = processes_of_workers()
    return world


def may_run(name: str, isolation: str) -> bool:
    """Whether the machine survives it: a fork bomb needs a limit on its user's processes that does not hit the tests too."""
    return name != "fork_bomb" or isolation == "namespace" or os.geteuid() == 0


def processes_of_workers() -> list[str]:
    """Processes that still run a worker's code, by their command lines."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid != os.geteuid() and b"llmcourse.grade" in (process / "cmdline").read_bytes():
                found.append((process / "cmdline").read_text(errors="replace"))
        except OSError:
            continue
    return found


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


def graded_pack(isolation: str):
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


@pytest.fixture(scope="module")
def namespace_world(namespaces):
    yield from graded_pack("namespace")


@pytest.fixture(scope="module")
def process_world():
    yield from graded_pack("process")


@pytest.fixture(params=BOTH)
def world(request) -> World:
    """The pack as graded in this test's tier."""
    return request.getfixturevalue(f"{request.param}_world")


def expected(world: World, case) -> float:
    """The score that a case must get."""
    full = case.full_marks(list(world.lesson.exercises))
    return sum(probe.points for probe in world.lesson.probes if probe.exercise in full)


def row(world: World, name: str) -> dict:
    if not may_run(name, world.isolation):
        pytest.skip("no limit on processes would hold it here: it needs root or the namespace tier")
    return world.rows[name]


PROMISED = [(tier, name) for tier in BOTH for name, case in CASES.items() if tier == "namespace" or not case.attack]
in_namespace = pytest.mark.parametrize("world", ["namespace"], indirect=True)
in_process = pytest.mark.parametrize("world", ["process"], indirect=True)


@pytest.mark.parametrize("world, name", PROMISED, indirect=["world"])
def test_every_case_has_the_row_that_it_should_have(world, name):
    case, found = CASES[name], row(world, name)
    assert (found["status"], float(found["score"])) == (case.status, expected(world, case)), found["reason"]
    assert case.reason in found["reason"]
    assert case.warning in " ".join(world.reports[name]["warnings"])


@pytest.mark.parametrize("name", CASES)
def test_nothing_but_right_or_wrong_answers_looks_like_an_honest_result(world, name):
    found = row(world, name)
    died = {"timeout", "process died", "not run", "forbidden"} & {test["reason"] for test in world.reports[name]["tests"]}
    assert found["status"] != "ok" or (not died and not world.reports[name]["problems"])


@pytest.mark.parametrize("name", ["aa_neighbour", "mm_neighbour", "zz_neighbour"])
def test_neighbours_get_full_marks(world, name):
    assert (world.rows[name]["status"], float(world.rows[name]["score"])) == ("ok", world.lesson.points())


def test_a_file_that_is_deleted_meanwhile_has_a_row(world):
    assert world.rows["deleted_while_grading"]["status"] == "unreadable"


def test_there_is_a_row_for_every_submission(world):
    n_left_out = sum(not may_run(name, world.isolation) for name in CASES)
    assert len(world.rows) == len(CASES) - n_left_out + 4


def test_nothing_of_a_worker_is_left_running(world):
    assert world.left_behind == []


def test_the_failed_import_is_the_first_problem_of_the_report(world):
    assert [one["error"] for one in world.reports["import_error"]["problems"]] == ["ModuleNotFoundError", "ZeroDivisionError"]


def test_every_report_says_how_far_it_can_be_trusted(world):
    trusted = world.isolation == "namespace"
    assert {(report["isolation"], report["trusted"]) for report in world.reports.values()} == {(world.isolation, trusted)}
    assert all((UNTRUSTED in world.page(name)) != trusted for name in ("aa_neighbour", "sys_exit", "not_a_notebook"))


@in_namespace
def test_no_file_outside_the_reports_has_changed(world):
    assert world.after == world.before


@in_namespace
def test_no_submission_reached_a_listener_on_loopback(world):
    assert world.connections == []


@in_namespace
def test_no_secret_of_the_environment_or_of_hidden_probes_is_in_any_report(world):
    secrets = (SECRET, "own_probe_of_decode(answer", "/own/01.py")
    pages = "".join(file.read_text("utf-8") for file in (world.folder / "graded" / "reports").iterdir())
    assert [secret for secret in secrets if secret in pages] == []


@in_process
def test_the_attack_on_the_solutions_would_work_without_the_isolation(world):
    assert float(world.rows["attack_reads_solutions"]["score"]) > 0


def test_the_notebooks_in_the_tree_are_those_of_the_sources():
    files = {file.stem: file.read_bytes() for file in hostile_pack.NOTEBOOKS.glob("*.ipynb")}
    assert files == {case.name: case.content for case in CASES.values()}, "run: python tests/grade/hostile_pack.py"
