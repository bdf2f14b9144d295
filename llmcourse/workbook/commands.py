"""The course's commands: author, open, reset, check, hint, progress. Nothing heavy is imported before one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, List, Optional

import typer

app = typer.Typer()
author_app = typer.Typer(no_args_is_help=True, help="Write lessons: make a skeleton, build the notebooks.")
app.add_typer(author_app, name="author", rich_help_panel="Teach")

STUDY = "Study"
Lessons = Annotated[
    Optional[List[str]], typer.Argument(metavar="[NN]...", help="Lesson numbers; none: all.", show_default=False)
]
Folder = Annotated[
    Optional[Path],
    typer.Option("--in", metavar="FOLDER", help="Where the notebooks are; if left out, your work folder.",
                 show_default=False),
]
Lab = Annotated[
    Optional[List[str]],
    typer.Argument(metavar="[NN|NN.NAME]...", help="Labs or single exercises; none: all labs.", show_default=False),
]
Level = Annotated[int, typer.Argument(metavar="1..3", min=1, max=3, help="1 nudges, 2 gives the formula, 3 the steps.")]
Hidden = Annotated[bool, typer.Option("--hidden", help="Run the hidden checks too, on inputs that nobody has seen.")]
Seed = Annotated[
    Optional[int], typer.Option(metavar="N", help="With --hidden: draw the same inputs again.", show_default=False)
]
CheckOnly = Annotated[
    bool, typer.Option("--check", help="Write nothing; exit with 1 if anything is stale or malformed.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite generated notebooks that were changed by hand.")]
Exercise = Annotated[str, typer.Argument(metavar="NN.NAME", help="An exercise, such as 01.merge_pair.")]


@app.command("open", rich_help_panel=STUDY)
def open_(lessons: Lessons = None) -> None:
    """Put labs into your work folder, or bring your copies up to date; nothing of yours is overwritten."""
    from llmcourse.workbook.course import course, work_folder
    from llmcourse.workbook.opening import open_lab

    ours = course()
    for opened in [open_lab(ours, number, work_folder()) for number in lessons or ours.labs()]:
        said = {"copied": "your copy is ready", "kept": "your copy is up to date",
                "replaced": "it could not be read: a fresh copy",
                "updated": f"the lab changed; answers carried over: {', '.join(opened.carried) or 'none'}"}
        typer.echo(f"{opened.path}: {said[opened.what]}")
        if opened.backup:
            typer.echo(f"What was there before is kept as {opened.backup}")


@app.command(rich_help_panel=STUDY)
def reset(exercise: Exercise) -> None:
    """Make one exercise untouched again; your answer is kept as a file."""
    from llmcourse.workbook.course import course, work_folder
    from llmcourse.workbook.opening import reset as reset_exercise

    path, kept = reset_exercise(course(), exercise, work_folder())
    typer.echo(f"{exercise} is untouched again in {path}; your answer is kept as {kept}")


@app.command(rich_help_panel=STUDY)
def check(lessons: Lab = None, folder: Folder = None, hidden: Hidden = False, seed: Seed = None) -> None:
    """Check your answers and say what is wrong. Exits with 1 while anything is not complete.

    With --hidden this is what a grader runs: visible and hidden checks on new inputs.
    """
    import secrets

    from llmcourse.errors import CourseError, UnknownLesson
    from llmcourse.workbook.checking import check_lab
    from llmcourse.workbook.course import course, work_folder
    from llmcourse.workbook.examine import VISIBLE_SEED
    from llmcourse.workbook.report import report

    if seed is not None and not hidden:
        raise typer.BadParameter("it goes with --hidden: the visible checks always use the same inputs", param_hint="--seed")
    draw = (secrets.randbelow(10**6) if seed is None else seed) if hidden else VISIBLE_SEED
    where = folder or work_folder()
    if folder and not folder.exists():
        raise CourseError(f"there is no folder {folder}")
    ours, complete = course(), True
    wanted = [ours.lab_and_exercise(one) for one in lessons or ours.labs()]
    if not wanted:
        raise UnknownLesson("there is no lab to check")
    if hidden:
        typer.echo(f"Visible and hidden checks with new inputs; the same again: --hidden --seed {draw}")
    for name, only in wanted:
        checked = check_lab(ours, name, where, only=only, seed=draw, hidden=hidden)
        typer.echo(f"Lab {name}: {checked.path or f'not in {where}; open it with: llmcourse open {checked.number}'}")
        for line in (*checked.answers.warnings, *checked.failures):
            typer.echo(f"  ! {line}")
        for one in checked.exercises:
            typer.echo(str(report(one, hidden=hidden)))
        complete = complete and checked.complete
    raise typer.Exit(0 if complete else 1)


@app.command(rich_help_panel=STUDY)
def hint(exercise: Exercise, level: Level = 1) -> None:
    """Show a hint for an exercise."""
    from llmcourse.workbook.checking import hint_report
    from llmcourse.workbook.course import course

    name, one = course().lab_and_exercise(exercise)
    if not one:
        raise typer.BadParameter(f"{exercise!r} is not an exercise; write it like 01.merge_pair", param_hint="NN.NAME")
    typer.echo(str(hint_report(course().lesson(name), one, level, "llmcourse hint {exercise} {level}")))


@app.command(rich_help_panel=STUDY)
def progress() -> None:
    """Show the whole course: what is done, what it unlocks, what comes next, and your predictions."""
    from llmcourse.workbook.course import course, work_folder
    from llmcourse.workbook.progress import lines
    from llmcourse.workbook.progress import progress as labs_of

    work = work_folder()
    typer.echo(f"Your labs in {work}{'' if work.is_dir() else ', which is not there yet (llmcourse open makes it)'}")
    for line in lines(list(labs_of(course(), work)), work):
        typer.echo(line)


@author_app.command()
def build(lessons: Lessons = None, check_only: CheckOnly = False, force: Force = False) -> None:
    """Build and execute the notebooks of these lessons, or of all that are stale."""
    from llmcourse.workbook import author

    if check_only:
        found = author.check(lessons or ())
        for line in found:
            typer.echo(line)
        raise typer.Exit(1 if found else 0)
    written = author.build(lessons or (), force=force, say=typer.echo)
    for path in written:
        typer.echo(f"wrote {path.parent.name}/{path.name}")
    if not written:
        typer.echo("everything is up to date")


@author_app.command()
def new(name: Annotated[str, typer.Argument(metavar="NN_NAME", help="Such as 03_attention.")]) -> None:
    """Make the four files of a lesson, small but complete."""
    from llmcourse.workbook import author

    for path in author.new(name):
        typer.echo(f"made {path}")
