"""`llmcourse grade`. Nothing heavy is imported before it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, List, Optional, Tuple

import typer

if TYPE_CHECKING:
    from llmcourse.grade.options import Graded

app = typer.Typer()
INTERRUPTED = 130
MAX_SHOWN = 20


Paths = Annotated[
    List[Path],
    typer.Argument(metavar="PATH...", help="Notebooks, folders of notebooks, or folders of one folder for each student."),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="Folder for grades.csv and the reports.")]
LessonNumber = Annotated[str, typer.Option(metavar="NN", help="Grade this lesson; without it, each notebook says its own.")]
Seed = Annotated[
    Optional[int],
    typer.Option(help="Of the drawn inputs. Without it: that of the run before in OUT, else a new one.", show_default=False),
]
Jobs = Annotated[
    Optional[int], typer.Option(help="Submissions at once. Without it: one for each processor.", show_default=False)
]
TimeFactor = Annotated[float, typer.Option(help="Scales every time limit.")]
HiddenDir = Annotated[
    Optional[Path], typer.Option(metavar="DIR", help="Your own probes: DIR/NN.py.", show_default=False)
]
Isolation = Annotated[str, typer.Option(help="auto, namespace or process. auto: the better one that works here.")]
Roster = Annotated[
    Optional[Path], typer.Option(metavar="FILE", help="Who is expected: one id a line, or a CSV.", show_default=False)
]
Export = Annotated[
    Optional[Tuple[str, Path]],
    typer.Option(metavar="answers DIR", help="Write everyone's answer code as plain files.", show_default=False),
]
Regrade = Annotated[bool, typer.Option("--regrade", help="Grade all anew, also what did not change.")]


@app.command(rich_help_panel="Teach")
def grade(
    paths: Paths, out: Out, lesson: LessonNumber = "", seed: Seed = None, jobs: Jobs = None,
    time_factor: TimeFactor = 1.0, hidden_dir: HiddenDir = None, isolation: Isolation = "auto", roster: Roster = None,
    export: Export = None, regrade: Regrade = False,
) -> None:  # fmt: skip
    """Grade submissions and say for each what is right and what is not.

    Runs every submission shut in, with fresh inputs, and writes OUT/grades.csv, OUT/reports/NAME.html for the student
    and NAME.json. The same command again goes on after an interruption, and grades what is new or has changed.

    [bold]Example[/bold]

    llmcourse grade submissions/ --lesson 01 --roster class.csv -o graded/
    """
    import os

    from llmcourse.grade.options import Options
    from llmcourse.grade.run import grade as run

    options = Options(
        tuple(paths), out, lesson, seed=seed, jobs=jobs or os.cpu_count() or 1, time_factor=time_factor,
        hidden_dir=hidden_dir, isolation=isolation, roster=roster, export=export, regrade=regrade,
    )  # fmt: skip
    with _Bar() as bar:
        graded = run(options, bar.show)
    for line in summary(graded, out):
        typer.echo(line)
    if graded.interrupted:
        raise typer.Exit(INTERRUPTED)


class _Bar:
    """A progress bar on stderr, where that is a terminal."""

    def __enter__(self) -> _Bar:
        self.bar, self.what = None, ""
        return self

    def show(self, what: str, n_done: int, n_all: int) -> None:
        from tqdm import tqdm

        if self.what != what:
            self.__exit__()
            self.what, self.bar = what, tqdm(total=n_all, desc=what, unit=" submissions", disable=None)
        self.bar.update(n_done - self.bar.n)

    def __exit__(self, *error) -> None:
        if self.bar is not None:
            self.bar.close()


def summary(graded: Graded, out: Path) -> list[str]:
    """What is said at the end of a run."""
    from collections import Counter

    from llmcourse.grade.isolation import NO_FILTER, UNTRUSTED
    from llmcourse.grade.printable import printable

    run, results = graded.record, graded.results
    statuses = Counter(result["status"] for result in results)
    lines = [
        f"{len(results)} rows in {out / 'grades.csv'}: "
        + ", ".join(f"{n} {status}" for status, n in statuses.most_common())
    ]
    lines.append(
        f"seed {run.seed}, isolation {run.isolation}, reports in {out / 'reports'}"
        + (f"; {graded.n_kept} kept from before" if graded.n_kept else "")
    )
    changed = graded.changed
    for result in changed[:MAX_SHOWN]:
        old = result["previous"]
        lines.append(
            f"  {printable(result['submission'])}: {old['score']:g} → {result['score']:g} of {result['max'] or 0:g}"
            + (f" ({old['status']} → {result['status']})" if old["status"] != result["status"] else "")
        )
    if len(changed) > MAX_SHOWN:
        lines.append(f"  … and {len(changed) - MAX_SHOWN} more changed: see previous_score in grades.csv")
    if run.isolation == "process":
        lines.append(f"WARNING: {UNTRUSTED} (namespace isolation: {run.why_not_better})")
    if run.no_filter and run.isolation != "process":
        lines.append(f"WARNING: {NO_FILTER} ({run.no_filter})")
    lines += [f"WARNING: {printable(one)}" for one in graded.warnings[:MAX_SHOWN]]
    if run.not_hidden:
        lines.append(f"WARNING: the lab imports what its answers may not see: {', '.join(run.not_hidden)}")
    if graded.interrupted:
        lines.append("interrupted; the same command goes on from here")
    return lines
