"""What a run is asked for, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from llmcourse.errors import CourseError

from .exports import check_kind
from .limits import Limits
from .record import Record


@dataclass(frozen=True)
class Options:
    """What `llmcourse grade` is asked for; the command's help says what each means. limits None: the usual ones.

    warm: fork workers from a server where that is possible; without it each is a new Python.
    """

    paths: tuple[Path, ...]
    out: Path
    lesson: str = ""
    seed: int | None = None
    jobs: int = 1
    time_factor: float = 1.0
    hidden_dir: Path | None = None
    isolation: str = "auto"
    roster: Path | None = None
    export: tuple[str, Path] | None = None
    regrade: bool = False
    limits: Limits | None = None
    warm: bool = True


@dataclass
class Graded:
    """A run's results, in order of the table; n_kept: those that were graded before and did not change.

    warnings: what could not be written.
    """

    record: Record
    results: list[dict]
    n_kept: int = 0
    warnings: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def changed(self) -> list[dict]:
        """Results whose score or status is not what it was before."""
        return [
            r
            for r in self.results
            if r["previous"] and (r["previous"]["score"], r["previous"]["status"]) != (r["score"], r["status"])
        ]


def check(options: Options) -> None:
    """Raise CourseError for options that make no sense."""
    if options.jobs < 1 or options.time_factor <= 0:
        raise CourseError(f"--jobs and --time-factor must be above 0, not {options.jobs} and {options.time_factor:g}")
    for path in filter(None, (options.hidden_dir, options.roster)):
        if not path.exists():
            raise CourseError(f"there is no {path}")
    if options.export:
        check_kind(options.export[0])
