"""All that grading one lab takes: its probes, the reference's results, and the places where submissions run."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import llmcourse
from llmcourse.checks import Lesson
from llmcourse.errors import CourseError
from llmcourse.workbook.course import PACKAGE, Course

from .supervise import BUDGET_SECONDS, Budget, Supervised, supervise
from .limits import Limits, worker_uid
from .reader import ReadNotebook
from .reference import Reference, graded_lesson, reference
from .results import graded
from .sandbox import NAMESPACE, Sandbox
from .visible_files import secret_code, files_for
from .workers import MAX_BYTES, ForkServer, Spawner, WorkerSetup, can_fork


@dataclass(frozen=True)
class RunSettings:
    """What of a run a lab must know: where it runs and who is shut in how.

    folder: the grader's own temporary one. private: what no worker may see. hidden_dir: an instructor's own probes.
    """

    course: Course
    cache: Path
    folder: Path
    private: tuple[Path, ...]
    tier: str
    limits: Limits
    seed: int
    time_factor: float
    hidden_dir: Path | None = None
    reads_all: bool = False


class GradedLab:
    """One lab of a run. not_hidden: modules that answers may not see, but that the lab itself imports."""

    def __init__(self, settings: RunSettings, number: str):
        self.settings, self.name = settings, settings.course.name(number)
        self.not_hidden: set[str] = set()
        self.private = private_probes(settings.hidden_dir, self.name) if settings.hidden_dir else None

    @cached_property
    def lesson(self) -> Lesson:
        """The lab's exercises and all probes, an instructor's own among them."""
        return graded_lesson(self.settings.course, self.name, self.private)

    @cached_property
    def reference(self) -> Reference:
        """What the solutions give, computed once."""
        return reference(self.settings.course, self.name, self.private, self.settings.seed, self.settings.time_factor)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with everything that a score depends on, submissions apart."""
        course, name, digest = self.settings.course, self.name, hashlib.sha256()
        files = [
            course.exercise(name),
            course.solution(name),
            course.wrong(name),
            course.root / "checks" / f"{name}.py",
            *sorted((PACKAGE / "checks").glob("*.py")),
            self.private,
        ]
        for file in files:
            digest.update(file.read_bytes() if file and file.is_file() else b"none")
        settings = self.settings
        digest.update(
            json.dumps([llmcourse.__version__, settings.seed, settings.time_factor, settings.tier, settings.limits.memory]).encode()
        )
        return digest.hexdigest()[:16]

    def workers(self, slot: int, *, warm: bool = True) -> ForkServer | Spawner:
        """Where job number `slot` gets its workers from; to be closed. Raises CourseError when there can be none."""
        settings = self.settings
        lab = {
            "root": str(settings.course.root),
            "lesson": self.name,
            "given": self.reference.lessons,
            "secrets": [module for _, module in secret_code(self.lesson)],
            "modules": self.reference.modules,
            "preload": self.reference.preload,
        }
        size = sum(len(json.dumps(outcome)) for outcome in self.reference.outcomes.values())
        setup = WorkerSetup(settings.course.root, settings.cache, lab, MAX_BYTES + 2 * size)
        if not (warm and can_fork()):
            return Spawner(setup, settings.limits)
        uid = worker_uid(slot)
        if settings.tier == NAMESPACE:
            root = settings.folder / "root"
            root.mkdir(exist_ok=True)
            visible = files_for(settings.course, self.lesson, settings.cache, root, settings.private)
            server = ForkServer(setup, Sandbox(settings.tier, settings.limits, uid, visible), settings.folder)
            self.not_hidden.update(server.ready["exposed"])
            return server
        scratch = scratch_folder(settings.folder, slot, uid)
        return ForkServer(
            setup,
            Sandbox(settings.tier, settings.limits, uid, scratch=str(scratch), reads_all=settings.reads_all),
            settings.folder,
        )

    def grade(self, workers, name: str, read: ReadNotebook, stopped: Callable[[], bool]) -> dict:
        """One submission's result (see results.graded). Raises CourseError when the grader itself fails."""
        own = [probe for probe in self.lesson.probes if probe.id not in self._private_ids]
        payload = {
            "file": name,
            "pieces": read.pieces,
            "private": "",
            "seed": self.settings.seed,
            "time_factor": self.settings.time_factor,
            "calls": self.reference.calls,
        }
        factor = self.settings.time_factor
        budget = Budget(BUDGET_SECONDS * factor, read.seconds)
        supervised = supervise(workers, payload, own, stopped, budget)
        if self.private:  # in workers of their own, so that no message of a visible probe can tell of them
            private = [probe for probe in self.lesson.probes if probe.id in self._private_ids]
            more = supervise(workers, {**payload, "private": self.private.read_text("utf-8")}, private, stopped, budget)
            supervised = Supervised(
                {**supervised.outcomes, **more.outcomes}, {**supervised.seconds, **more.seconds}, supervised.problems
            )
        return graded(self.lesson, self.reference, read, supervised)

    @cached_property
    def _private_ids(self) -> set[str]:
        public = {probe.id for probe in self.settings.course.lesson_named(self.name).probes} if self.private else None
        return set() if public is None else {probe.id for probe in self.lesson.probes} - public


def private_probes(folder: Path, name: str) -> Path | None:
    """An instructor's file for a lab: 01_tokenizer.py or 01.py; None if there is none. Raises CourseError for two."""
    found = [file for file in (folder / f"{name}.py", folder / f"{name[:2]}.py") if file.is_file()]
    if len(found) > 1:
        raise CourseError(f"{folder} has both {found[0].name} and {found[1].name}: keep one")
    return found[0] if found else None


def scratch_folder(folder: Path, slot: int, uid: int) -> Path:
    """A folder that only this slot's worker can use."""
    folder.chmod(0o711)
    scratch = folder / f"scratch{slot}"
    scratch.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        os.chown(scratch, uid, uid)
    return scratch
