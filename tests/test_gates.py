"""The course's gates: what must be true of every lab. They run on each lab of the repository, and on a fake one.

Oracles: the lab's own solution as reference; the sentence that each wrong answer says it must trigger.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from functools import lru_cache
from pathlib import Path

import pytest

from llmcourse import given
from llmcourse.checks import LESSONS, Answer, load_wrong
from llmcourse.checks.run import judge, run_probe
from llmcourse.grade.credit import N_SEEDS, credited, is_repeated
from llmcourse.workbook import author
from llmcourse.workbook.answers import load_answers
from llmcourse.workbook.course import PACKAGE, Course
from llmcourse.workbook.examine import Examined, examine
from llmcourse.workbook.report import report
from llmcourse.workbook.running import run_notebook
from tests import fake_course

REPOSITORY = Course(PACKAGE.parent)
LABS = author.sources(REPOSITORY)
SEEDS = (1, 2, 3, 4, 5)


@pytest.fixture(scope="module")
def fake(tmp_path_factory) -> Course:
    """The fake course, built."""
    course = fake_course.write(tmp_path_factory.mktemp("gates"))
    author.build(root=course.root)
    return course


@pytest.fixture(params=[fake_course.NAME, *LABS])
def lab(request, fake, monkeypatch) -> tuple[Course, str]:
    """A course and the full name of one of its labs; the course is the one in use."""
    course = fake if request.param == fake_course.NAME else REPOSITORY
    monkeypatch.setenv("LLMCOURSE_ROOT", str(course.root))
    return course, request.param


def marks(course: Course, name: str, folder: str, seed: int) -> list[Examined]:
    """What a built notebook of the course gets for each exercise, visible and hidden probes."""
    lesson = course.lesson(name)
    loaded = load_answers(course.root / folder / f"{name}.ipynb", course.exercise(name), lesson.exercises)
    answer = Answer({one: loaded.objects[one] for one in lesson.exercises if one in loaded.objects})
    reference = given.answer(lesson.number)
    return [examine(lesson, one, answer, reference, forbids=given.forbidden(lesson, one), seed=seed, hidden=True)
            for one in lesson.exercises]


def test_the_course_has_labs_and_each_is_complete():
    written = [f"{number}_{name}" for number, name in LESSONS.items() if (PACKAGE / "checks" / f"{name}.py").is_file()]
    assert LABS, "no lab was found: every gate below would pass by looking at nothing"
    assert LABS == written == REPOSITORY.labs()
    assert author.check() == []


ALWAYS = (  # the rows of docs/authoring.md that say so; the first holds the lab's outside oracle
    "tests/checks/test_{}.py", "llmcourse/checks/{}.py", "llmcourse/workbook/plots/{}.py",
)  # fmt: skip


@pytest.mark.parametrize("name", LABS)
def test_a_lesson_has_its_oracle_its_probes_and_its_figures(name):
    missing = [file.format(name[3:]) for file in ALWAYS if not (PACKAGE.parent / file.format(name[3:])).is_file()]
    assert missing == []


def test_the_untouched_exercise_scores_nothing(lab):
    got = marks(*lab, "exercises", seed=1)
    assert got and all(one.points == 0 and one.unwritten for one in got)


def test_the_untouched_exercise_runs_from_top_to_bottom(lab):
    course, name = lab
    notebook = author.generate(course, name, "exercise")
    ran = run_notebook(notebook, course.exercise(name), course.root)
    assert all(cell["execution_count"] for cell in ran["cells"] if cell["cell_type"] == "code")


@pytest.mark.parametrize("seed", SEEDS)
def test_the_solution_scores_full_marks(lab, seed):
    got = marks(*lab, "solutions", seed)
    assert got and [v.as_json() for one in got for v in one.verdicts if not v.ok] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_replay_of_another_seeds_results_earns_nothing(lab, seed):
    """Oracle: the solution's own results for each of the next eleven seeds, handed in for this one."""
    course, name = lab
    lesson, reference = course.lesson(name), given.answer(name)
    run = lru_cache(maxsize=None)(lambda probe, seed: run_probe(probe, reference, seed))
    repeated = [p.id for p in lesson.probes if is_repeated(p, run(p, seed), seed, run)]
    for one in lesson.exercises:
        assert any(p.id not in repeated for p in lesson.of(one)), f"every result of {one} comes up again: draw more"
    for other in range(seed + 1, seed + N_SEEDS):
        replayed = credited([judge(p, run(p, other), run(p, seed)) for p in lesson.probes], repeated)
        assert [v.probe.id for v in replayed if v.points] == []
        honest = credited([judge(p, run(p, seed), run(p, seed)) for p in lesson.probes], repeated)
        assert all(v.points for v in honest)


def test_every_wrong_answer_loses_points_and_gets_its_message(lab):
    course, name = lab
    lesson, loaded, reference = course.lesson(name), given.answers(name), given.answer(name)
    wrongs = load_wrong(course.wrong(name))
    assert {one.exercise for one in wrongs} == set(lesson.exercises)
    for one in wrongs:
        answer = reference.replaced(one.exercise, one.build(loaded.sources[one.exercise], loaded.objects))
        got = examine(lesson, one.exercise, answer, reference, forbids=lesson.exercises[one.exercise].forbids, wrongs=wrongs,
                      namespace=loaded.objects, source=loaded.sources[one.exercise], hidden=True)
        assert got.points < got.max_points, f"{one.name} keeps all its points"
        assert one.says in str(report(got)), f"{one.name} is not told {one.says!r}, but:\n{report(got)}"


def test_an_installed_wheel_checks_and_opens_labs_without_the_repository(fake, tmp_path):
    tree = copy_of_the_sources(fake, tmp_path / "tree")
    build = [sys.executable, "-m", "pip", "wheel", str(tree), "--no-build-isolation", "--no-deps", "-q", "-w", str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True, cwd=tmp_path)
    wheel, = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    shutil.rmtree(tree)
    assert [learner(tmp_path, "check", name[:2], "--in", str(course.root / "solutions")) for course, name in labs_of(fake)] == (
        [0] * len(labs_of(fake)))
    assert learner(tmp_path, "open", "90") == 0
    assert learner(tmp_path, "check", "90") == 1
    assert (tmp_path / "home" / "work" / f"{fake_course.NAME}.ipynb").is_file()


def labs_of(fake: Course) -> list[tuple[Course, str]]:
    """Every lab that the wheel carries, with the course whose solutions it was built from."""
    return [(fake, fake_course.NAME), *((REPOSITORY, name) for name in LABS)]


def learner(tmp_path: Path, *arguments: str) -> int:
    """Exit code of a command run from an empty folder, with only the installed package at hand."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("LLMCOURSE")}
    done = subprocess.run([sys.executable, "-m", "llmcourse", *arguments], cwd=home, env={**env, "PYTHONPATH": str(tmp_path / "site")},
                          capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def copy_of_the_sources(fake: Course, tree: Path) -> Path:
    """The repository's sources and labs, with the fake lab among them."""
    root = PACKAGE.parent
    shutil.copytree(PACKAGE, tree / "llmcourse", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("authoring", "exercises", "solutions"):
        for origin in (root, fake.root):
            if (origin / folder).is_dir():
                shutil.copytree(origin / folder, tree / folder, dirs_exist_ok=True)
    shutil.copytree(fake.root / "checks", tree / "llmcourse" / "data" / "course" / "checks")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(root / name, tree / name)
    return tree
