"""Grade everything: `grade(Options(...))`. Resumable, and every submission has a row whatever it does."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import llmcourse
from llmcourse.checks import Lesson
from llmcourse.errors import CourseError
from llmcourse.fetch import cache_dir
from llmcourse.workbook.course import Course, course

from . import isolation, record, results
from .lab import GradedLab, RunSettings
from .exports import export_answers
from .gradebook import write_grades
from .jobs import Task, work_through
from .limits import jobs_that_fit, limits_for, worker_uid
from .options import Graded, Options, check
from .printable import printable
from .reader import ReadNotebook, Reader
from .report import write_report
from .roster import match, read_roster
from .sandbox import NAMESPACE, PROCESS
from .submissions import Submission, find, read_content
from .visible_files import files_for

ROW_BYTES = 4096
Progress = Callable[[str, int, int], None]


def grade(options: Options, progress: Progress = lambda what, n_done, n: None) -> Graded:
    """Grade all submissions and write grades.csv, run.json and reports/ into options.out.

    progress(what, n_done, n_all) is called as things get done.
    Raises CourseError when nothing can be graded; what a submission does never raises.
    """
    check(options)
    roster = read_roster(options.roster) if options.roster else []
    found = find(options.paths, skip=[options.out, *([options.export[1]] if options.export else [])])
    with record.locked(options.out):
        folder = Path(tempfile.mkdtemp(prefix="llmcourse-grade-"))
        try:
            return _Run(options, course(), folder, roster, found).run(progress)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class _Run:
    """One run: reads, grades what must be graded, writes."""

    def __init__(self, options: Options, ours: Course, folder: Path, roster: list[str], found: list[Submission]):
        self.options, self.course, self.roster, self.found = options, ours, roster, found
        self.asked = ours.name(options.lesson)[:2] if options.lesson else ""
        self.record = record.opened(options.out, options.seed, options.regrade)
        self.before = record.results_before(options.out)
        record.check_lesson(options.out, self.before, self.asked)
        by_owner, doubts = match((one.owner for one in found), roster)
        self.students = {one.name: by_owner[one.owner] for one in found if one.owner in by_owner}
        self.doubts = {one.name: doubts[one.owner] for one in found if one.owner in doubts}
        self.jobs, self.warnings = jobs_that_fit(options.jobs), []
        self.settings = self._settings(folder)
        self.labs: dict[str, GradedLab] = {}

    def _settings(self, folder: Path) -> RunSettings:
        """Find out how submissions can be shut in here, and note it."""
        options = self.options
        private = [options.out, *options.paths, *filter(None, (options.hidden_dir, options.roster))]
        private = [path.resolve() for path in (*private, *([options.export[1]] if options.export else []))]
        (folder / "root").mkdir()
        os.chmod(folder, 0o711)
        trial = files_for(self.course, Lesson("00", "", {}, ()), cache_dir(), folder / "root", private)
        tier, why = isolation.tier(options.isolation if options.warm else PROCESS, trial, worker_uid(0))
        self.record.isolation, self.record.why_not_better = tier, why
        self.record.no_filter = isolation.why_no_filter(worker_uid(0)) if options.warm else "every worker is cold"
        self.record.course_version = llmcourse.__version__
        reads_all = (
            tier == PROCESS
            and options.warm
            and os.name == "posix"
            and os.geteuid() == 0
            and not isolation.reads_python(worker_uid(0))
        )
        return RunSettings(
            self.course,
            cache_dir(),
            folder,
            tuple(private),
            tier,
            options.limits or limits_for(self.jobs),
            self.record.seed,
            options.time_factor,
            options.hidden_dir,
            reads_all,
        )

    def run(self, progress: Progress) -> Graded:
        done: dict[str, dict] = {}
        self.record.settings = {key: str(value) for key, value in asdict(replace(self.options, limits=None)).items()}
        self.record.write(self.options.out)
        reserve = record.Reserve(self.options.out, ROW_BYTES * (len(self.found) + len(self.roster)))
        tasks, kept, interrupted = [], set(), False
        try:
            for n, (one, sha256, read) in enumerate(self._read_all()):
                progress("reading", n + 1, len(self.found))
                try:
                    result, task = self._sort(one, sha256, read)
                except CourseError:
                    raise  # the lab's own fault
                except Exception as error:
                    why = f"the grader failed on it: {type(error).__name__}: {error}"
                    result, task = self._without_score(one, sha256, read, results.UNREADABLE, why), None
                if task:
                    tasks.append(task)
                else:
                    kept.update([one.name] if result is self.before.get(one.name) else [])
                    done[one.name] = self._written(one, result)
            tasks.sort(key=lambda task: task.lab.name)
            with closing(work_through(tasks, self.jobs, self.options.warm)) as graded:
                for task, result in graded:
                    done[task.submission.name] = self._written(task.submission, self._complete(task, result))
                    progress("grading", len(done), len(self.found))
        except KeyboardInterrupt:
            interrupted = True
        finally:
            reserve.release()
            known = {**self.before, **done}
            rows = [self._of_somebody(known[one.name]) for one in self.found if one.name in known] + self._missing()
            self._write("grades.csv", lambda: write_grades(self.options.out / "grades.csv", rows))
            self.record.not_hidden = sorted({name for lab in self.labs.values() for name in lab.not_hidden})
            self.record.finished = len(done) == len(self.found)
            self._write("run.json", lambda: self.record.write(self.options.out))
        return Graded(self.record, rows, len(kept), self.warnings, interrupted)

    def _write(self, what: str, write: Callable[[], None]) -> None:
        """Write something; what cannot be written costs nobody else anything, and is said at the end."""
        try:
            write()
        except OSError as error:
            self.warnings.append(f"{what} could not be written: {error.strerror}; make room and run the command again")

    def _of_somebody(self, result: dict) -> dict:
        """The result as its row shows it: where nobody knows whose it is, that comes first."""
        doubt = self.doubts.get(result["submission"])
        if not doubt:
            return result
        status = results.PROBLEMS if result["status"] == results.OK else result["status"]
        return {**result, "student": None, "status": status, "reason": doubt}

    def _read_all(self) -> Iterable[tuple[Submission, str, ReadNotebook]]:
        reader = Reader(self.course.root, self.asked, self.options.time_factor)
        try:
            for one in self.found:
                if one.error:
                    yield one, "", ReadNotebook(error=one.error)
                    continue
                try:
                    content = read_content(one.path)
                    found = hashlib.sha256(content).hexdigest(), reader.read(one.path.name, content)
                except Exception as error:  # of this file, whatever it is: the next one is read all the same
                    why = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
                    found = "", ReadNotebook(error=f"{one.path.name}: {why}")
                yield one, *found
        finally:
            reader.close()

    def _sort(self, one: Submission, sha256: str, read: ReadNotebook) -> tuple[dict | None, Task | None]:
        """The result of what cannot be graded or was graded before; or a task."""
        if read.error:
            return self._without_score(one, sha256, read, results.UNREADABLE, read.error), None
        if self.asked and read.lesson != self.asked:
            why = f"this is a notebook of lesson {read.lesson}; lesson {self.asked} was asked for"
            return self._without_score(one, sha256, read, results.OTHER_LESSON, why), None
        if read.lesson not in (lab[:2] for lab in self.course.labs()):
            why = (
                f"this is a notebook of lesson {read.lesson}, which has no lab"
                if read.lesson
                else "nothing in it says which lesson it is of; grade it with --lesson NN"
            )
            return self._without_score(one, sha256, read, results.OTHER_LESSON, why), None
        lab = self._lab(read.lesson)
        if self.options.export:
            self._write(f"the answers of {one.name}", lambda: export_answers(self.options.export[1], one, read))
        before = self.before.get(one.name)
        if (
            before
            and (before.get("sha256"), before.get("fingerprint")) == (sha256, lab.fingerprint)
            and (not self.record.regrade or before.get("run") == self.record.id)
        ):
            return before, None
        return None, Task(one, read, lab, sha256)

    def _lab(self, number: str) -> GradedLab:
        if number not in self.labs:
            self.labs[number] = GradedLab(self.settings, number)
        return self.labs[number]

    def _without_score(self, one: Submission, sha256: str, read: ReadNotebook, status: str, why: str) -> dict:
        lesson = self.asked or read.lesson
        most = self._lab(self.asked).lesson.points() if self.asked else None
        result = results.without_score(status, printable(why), lesson=lesson, most=most)
        return self._framed(one.name, result, file=one.path, sha256=sha256, seconds=read.seconds)

    def _complete(self, task: Task, result: dict) -> dict:
        return self._framed(
            task.submission.name,
            result,
            file=task.submission.path,
            sha256=task.sha256,
            seconds=result.pop("wall_s"),
            fingerprint=task.lab.fingerprint if result["tests"] else "",
        )

    def _framed(
        self,
        name: str,
        result: dict,
        *,
        file: Path | None = None,
        sha256: str = "",
        seconds: float = 0.0,
        fingerprint: str = "",
    ) -> dict:
        """A result with what every report says about the run."""
        old = self.before.get(name)
        previous = old and {key: old.get(key) for key in ("score", "max", "status", "seed", "course_version", "graded")}
        return {
            "submission": name,
            "student": self.students.get(name),
            "file": printable(str(file or "")),
            "status": result["status"],
            "isolation": self.settings.tier,
            "trusted": self.settings.tier == NAMESPACE,
            "no_filter": self.record.no_filter,
            "seed": self.settings.seed,
            "course_version": llmcourse.__version__,
            **result,
            "seconds": round(seconds, 3),
            "previous": previous,
            "sha256": sha256,
            "fingerprint": fingerprint,
            "run": self.record.id,
            "graded": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }

    def _written(self, one: Submission, result: dict) -> dict:
        """The result, after its files were written; one that was kept gets its student anew, its files stay."""
        if result is self.before.get(one.name):
            return {**result, "student": self.students.get(one.name), "previous": result}
        base = self.options.out / record.REPORTS / one.file_name
        result = results.bounded(result)
        self._write(f"{base.name}.html", lambda: write_report(base.with_name(base.name + ".html"), result))
        self._write(f"{base.name}.json", lambda: record.write_json(base.with_name(base.name + ".json"), result))
        return result

    def _missing(self) -> list[dict]:
        """A row for everyone on the roster without a submission."""
        there = set(self.students.values())
        most = self._lab(self.asked).lesson.points() if self.asked else None
        absent = results.without_score(results.MISSING, "no submission", lesson=self.asked, most=most)
        return [{**self._framed(one, absent), "student": one} for one in self.roster if one not in there]
