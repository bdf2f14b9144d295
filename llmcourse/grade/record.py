"""What OUT holds of this run and of the one before: run.json, and one JSON file for each submission."""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from llmcourse.errors import CourseError

REPORTS = "reports"


@dataclass
class Record:
    """A run. id: changes when everything is to be graded anew; finished: whether the last one came to its end."""

    seed: int
    id: str
    regrade: bool = False
    finished: bool = False
    isolation: str = ""
    why_not_better: str = ""
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
    Raises CourseError where OUT cannot be written, or has a run.json that is not ours.
    """
    try:
        (out / REPORTS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CourseError(f"cannot write into {out}: {error.strerror}; choose another -o") from error
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
    """Write a file so that a reader sees all of it or nothing."""
    part = file.with_name(file.name + ".part")
    part.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    os.replace(part, file)
