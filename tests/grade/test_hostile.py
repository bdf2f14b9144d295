"""The hostile pack, graded in both tiers beside honest neighbours. Oracle: the first line of each source."""

from __future__ import annotations

import pytest

from llmcourse.grade.isolation import UNTRUSTED
from tests.grade import hostile_pack
from tests.grade.hostile_world import BOTH, CASES, SECRET, World, graded_pack, may_run


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
    died = {"timeout", "process died", "not run", "forbidden"} & {
        test["reason"] for test in world.reports[name]["tests"]
    }
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
    assert [one["error"] for one in world.reports["import_error"]["problems"]] == [
        "ModuleNotFoundError",
        "ZeroDivisionError",
    ]


def test_every_report_says_how_far_it_can_be_trusted(world):
    trusted = world.isolation == "namespace"
    assert {(report["isolation"], report["trusted"]) for report in world.reports.values()} == {
        (world.isolation, trusted)
    }
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
