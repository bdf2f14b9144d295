"""What OUT holds of this run and of the one before: run.json, and one JSON file for each submission."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from llmcourse.errors import CourseError

REPORTS = "reports"
_BLOCK = os.urandom(1 << 16)  # a disk that compresses keeps room for it, too


@dataclass
class Record:
    """A run. id: changes when everything is to be graded anew; finished: whether the last one came to its end."""

    seed: int
    id: str
    regrade: bool = False
    finished: bool = False
    isolation: str = ""
    why_not_better: str = ""
    no_filter: str = ""
    course_version: str = ""
    settings: dict = field(default_factory=dict)
    not_hidden: list[str] = field(default_factory=list)
    started: str = ""

    def write(self, out: Path) -> None:
        """Store it as OUT/run.json."""
        write_json(out / "run.json", asdict(self))


def opened(out: Path, seed: int | None, regrade: bool) -> Record:
    """The run to go on with in OUT, or a new one.

    A seed that is not given is that of the run before, else a new one is drawn. An interrupted regrade goes on as one.
    Raises CourseError where OUT has a run.json that is not ours.
    """
    before = _before(out / "run.json")
    started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    if before is None:
        return Record(
            secrets.randbelow(2**31) if seed is None else seed, secrets.token_hex(4), regrade, started=started
        )
    goes_on = before.regrade and not before.finished and seed in (None, before.seed)
    if goes_on or not regrade:
        run_id, regrade = before.id, goes_on
    else:
        run_id = secrets.token_hex(4)
    return Record(before.seed if seed is None else seed, run_id, regrade, started=started)


def _before(file: Path) -> Record | None:
    if not file.exists():
        return None
    try:
        return Record(**json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise CourseError(f"{file} is not of a grading run ({error}); choose another -o") from error


def results_before(out: Path) -> dict[str, dict]:
    """The results in OUT by submission; a file that is not one of ours is left alone."""
    found = {}
    for file in sorted((out / REPORTS).glob("*.json")):
        try:
            result = json.loads(file.read_text("utf-8"))
            found[result["submission"]] = result
        except (OSError, ValueError, TypeError, KeyError):
            continue  # half a file cannot be: it was put there by somebody else
    return found


def write_json(file: Path, content: dict) -> None:
    """Write a file of ours as JSON."""
    write_private(file, json.dumps(content, indent=1) + "\n")


def write_private(file: Path, text: str) -> None:
    """Write a file that only this user may read, so that a reader sees all of it or nothing; raises OSError."""
    part = file.with_name(file.name + ".part")
    part.unlink(missing_ok=True)
    try:
        with open(part, "x", encoding="utf-8", errors="backslashreplace", newline="", opener=_for_me_only) as out:
            out.write(text)
        os.replace(part, file)
    except OSError:
        part.unlink(missing_ok=True)  # half a file is of no use, and takes the room that others need
        raise


def _for_me_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Keep other graders out of a folder; raises CourseError while one is at work there, or nothing can be written."""
    try:
        (out / REPORTS).mkdir(parents=True, exist_ok=True)
        file = open(out / ".lock", "a", opener=_for_me_only)
    except OSError as error:
        raise CourseError(f"cannot write into {out}: {error.strerror}; choose another -o") from error
    with file:
        try:
            if os.name == "posix":
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                import msvcrt

                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise CourseError(f"another `llmcourse grade` is at work in {out}; wait for it, or choose another -o") from error
        yield


class Reserve:
    """Room on the disk that is kept free for the table, which must be written whatever the reports have filled."""

    def __init__(self, out: Path, n_bytes: int):
        self.file = out / ".reserve"
        try:
            with open(self.file, "wb") as room:
                for _ in range(n_bytes // len(_BLOCK) + 1):
                    room.write(_BLOCK)
        except OSError as error:
            self.release()
            raise CourseError(f"cannot write into {out}: {error.strerror}; make room, or choose another -o") from error

    def release(self) -> None:
        """Give the room back."""
        self.file.unlink(missing_ok=True)


def check_lesson(out: Path, before: dict[str, dict], lesson: str) -> None:
    """Raise CourseError where OUT holds grades of other lessons only: they would all become 0."""
    there = sorted({str(result.get("lesson")) for result in before.values() if result.get("tests")})
    if lesson and there and lesson not in there:
        raise CourseError(
            f"{out} holds grades of lesson {', '.join(there)}, and --lesson is {lesson}; choose another -o, or the same "
            "lesson"
        )
