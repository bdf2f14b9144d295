"""`llmcourse doctor`: is everything here, and what can this machine do?"""

from __future__ import annotations

from typing import Annotated

import typer

from llmcourse.cli import show
from llmcourse.cli.options import AsJson

Measure = Annotated[
    bool, typer.Option("--measure/--no-measure", help="Measure bandwidth and FLOP rates (some seconds), or do not.")
]


def doctor(measure: Measure = True, as_json: AsJson = False) -> None:
    """Look over this machine and this installation.

    Python, torch, devices with their measured bandwidth and FLOP rates, Triton, the cache folder, and for everything
    that is missing the command that brings it.

    [bold]Examples[/bold]

    llmcourse doctor

    llmcourse doctor --json
    """
    from llmcourse.measure.doctor import render, report

    found = report(measure=measure)
    if as_json:
        show.write_json(found)
    else:
        from rich.console import Console

        Console(highlight=False).print(render(found))
