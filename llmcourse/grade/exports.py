"""What else comes out of a run: `--export answers DIR`, everyone's answer code as plain files for similarity tools."""

from __future__ import annotations

from pathlib import Path

from llmcourse.errors import CourseError

from .reader import ReadNotebook
from .submissions import Submission, as_file_name

KINDS = ("answers",)


def check_kind(kind: str) -> None:
    """Raise CourseError for a kind of export that there is none of."""
    if kind not in KINDS:
        raise CourseError(f"there is no export {kind!r}; there is: {', '.join(KINDS)}")


def export_answers(folder: Path, submission: Submission, read: ReadNotebook) -> None:
    """Write DIR/submission/NN_exercise.py for each answer of one submission."""
    if not read.sources:
        return
    place = folder / submission.file_name
    place.mkdir(parents=True, exist_ok=True)
    for name, source in read.sources.items():
        target = place / f"{read.lesson}_{as_file_name(name)}.py"
        target.write_bytes((source.rstrip() + "\n").encode("utf-8", "backslashreplace"))
