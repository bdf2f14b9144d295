"""`llmcourse`: the commands, in the order of the help, and what the outside sees when one of them fails."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from typer.core import TyperGroup

from llmcourse.cli import bench, claims, doctor, download, generate, memory, tokenize, version
from llmcourse.cli.options import FAILED, INTERRUPTED, USAGE, with_folder
from llmcourse.errors import CourseError, UnknownLesson
from llmcourse.grade import commands as grading
from llmcourse.workbook import commands as studying

_UsageError = typer.BadParameter.__base__  # click's; newer versions of typer carry their own copy of click


class CourseGroup(TyperGroup):
    """Turns what ends a command early into one line on stderr and an exit code. Unexpected errors keep a traceback."""

    def main(self, args=None, *rest, standalone_mode: bool = True, **extra):
        """Run and exit: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C."""
        args = with_folder(sys.argv[1:] if args is None else list(args))
        if not standalone_mode:
            return super().main(args, *rest, standalone_mode=False, **extra)
        try:
            code = super().main(args, *rest, standalone_mode=False, **extra)
        except _UsageError as error:
            _say_usage(error)
            code = USAGE
        except typer.Abort:
            typer.echo("stopped", err=True)
            code = FAILED
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: typer.Context):
        """Run the command that was asked for."""
        try:
            super().invoke(ctx)
        except _UsageError as error:
            error.ctx = error.ctx or ctx
            raise
        except CourseError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(USAGE if isinstance(error, UnknownLesson) else FAILED) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(INTERRUPTED) from error


app = typer.Typer(
    cls=CourseGroup,
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    """Run a real language model, see how it works, and build it yourself.

    Start with: [bold]llmcourse generate "What is the capital of France?"[/bold]
    """
    if show_version:
        version.version()
        raise typer.Exit()
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


app.command("generate", rich_help_panel="Run a model")(generate.generate)
app.command("tokenize", rich_help_panel="Run a model")(tokenize.tokenize)
app.command("bench", rich_help_panel="Measure")(bench.bench)
app.command("memory", rich_help_panel="Measure")(memory.memory)
app.command("claims", rich_help_panel="Measure")(claims.claims)
app.command("doctor", rich_help_panel="Set up")(doctor.doctor)
app.command("download", rich_help_panel="Set up")(download.download)
app.command("version", rich_help_panel="Set up")(version.version)


for _part in (studying.app, grading.app):  # their commands stand beside ours; every version of typer can do it this way
    app.registered_commands.extend(_part.registered_commands)
    app.registered_groups.extend(_part.registered_groups)


def main() -> None:
    """Entry point of the `llmcourse` script."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")  # a Windows console or pipe would take a local code page
    app(prog_name="llmcourse")


def _say_usage(error) -> None:
    """One line: what was wrong, and where the help is. A bare group has shown its help already and has no message."""
    message = " ".join(error.format_message().split())
    if message:
        path = error.ctx.command_path
        if error.ctx.invoked_subcommand:
            path += f" {error.ctx.invoked_subcommand}"
        typer.echo(f"error: {message.rstrip('.')} (see {path} --help)", err=True)
