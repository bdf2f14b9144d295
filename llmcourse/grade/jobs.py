"""Several submissions at once: `work_through(tasks, n_jobs)`, one thread and one fork server for each job."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from llmcourse.errors import CourseError

from . import results
from .lab import GradedLab
from .printable import MAX_DETAIL, printable
from .reader import ReadNotebook
from .submissions import Submission
from .workers import WorkerLost

_TICK_SECONDS = 0.2
ATTEMPTS = 2


@dataclass(frozen=True)
class Task:
    """A submission to grade. sha256: of its file."""

    submission: Submission
    read: ReadNotebook
    lab: GradedLab
    sha256: str


def work_through(tasks: list[Task], n_jobs: int, warm: bool) -> Iterator[tuple[Task, dict]]:
    """Each task with its result, as they get done; the result has "wall_s", the seconds that it took.

    Leaving the loop, by an exception too, ends all workers. Raises CourseError when no worker can be had at all.
    """
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    for lab in {id(task.lab): task.lab for task in tasks}.values():
        results.check_reference(lab.lesson, lab.reference)
    done: queue.SimpleQueue = queue.SimpleQueue()
    stop = threading.Event()
    jobs = [
        threading.Thread(target=_Job(slot, waiting, done, stop, warm).run, daemon=True)
        for slot in range(min(n_jobs, len(tasks)))
    ]
    for job in jobs:
        job.start()
    try:
        for _ in tasks:
            yield _next(done)
    finally:
        stop.set()
        for job in jobs:
            job.join()


def _next(done: queue.SimpleQueue) -> tuple[Task, dict]:
    while True:
        try:
            task, result = done.get(timeout=_TICK_SECONDS)  # short waits, so that Ctrl-C is heard on every system
        except queue.Empty:
            continue
        if task is None:
            raise result
        return task, result


class _Job:
    """One thread: takes tasks until there are none."""

    def __init__(
        self, slot: int, waiting: queue.SimpleQueue, done: queue.SimpleQueue, stop: threading.Event, warm: bool
    ):
        self.slot, self.waiting, self.done, self.stop, self.warm = slot, waiting, done, stop, warm
        self.lab: GradedLab | None = None
        self.workers = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                try:
                    task = self.waiting.get_nowait()
                except queue.Empty:
                    return
                result = self._grade(task)
                if not self.stop.is_set():
                    self.done.put((task, result))
        except BaseException as error:
            self.done.put((None, error))
        finally:
            self._close()

    def _grade(self, task: Task) -> dict:
        """One result; where the grader's own worker fails twice, that is the result."""
        for _ in range(ATTEMPTS):
            try:
                self._open(task.lab)
                started = time.perf_counter()
                result = task.lab.grade(self.workers, task.submission.path.name, task.read, self.stop.is_set)
                return {**result, "wall_s": time.perf_counter() - started}
            except WorkerLost as error:
                self._close()
                why = f"the grader failed {ATTEMPTS} times: {error}; grade it again"
            except CourseError:
                raise  # the lab's fault, and so that of every submission
            except Exception as error:
                self._close()
                why = f"the grader failed on it: {type(error).__name__}: {error}; grade it again"
                break
        lesson = task.lab.lesson
        return {
            **results.without_score(results.PROBLEMS, printable(why)[:MAX_DETAIL], lesson=lesson.number, most=lesson.points()),
            "wall_s": 0.0,
        }

    def _open(self, lab: GradedLab) -> None:
        if self.workers is None or self.lab is not lab:
            self._close()
            self.lab, self.workers = lab, lab.workers(self.slot, warm=self.warm)

    def _close(self) -> None:
        if self.workers:
            self.workers.close()
        self.workers = None
