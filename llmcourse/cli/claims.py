"""`llmcourse claims`: the article's statements, measured on this machine."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from llmcourse.cli import show
from llmcourse.cli.options import AsJson

Ids = Annotated[
    Optional[list[str]], typer.Argument(metavar="[ID]...", help="Such as C13. Without: all.", show_default=False)
]


def claims(ids: Ids = None, as_json: AsJson = False) -> None:
    """Test what the article behind this course says, on this machine.

    Every statement comes with what was measured, a verdict, and the lesson to read.

    [bold]Examples[/bold]

    llmcourse claims

    llmcourse claims C10 C13 --json
    """
    from llmcourse.claims import claims as ledger

    wanted, findings = ledger(ids or ()), []
    for one in wanted:
        finding = one.check()
        findings.append(finding.as_json())
        if not as_json:
            typer.echo("\n".join(_lines(findings[-1])) + "\n")
    if as_json:
        show.write_json({"claims": findings})


def _lines(finding: dict[str, str]) -> list[str]:
    why = f": {finding['why']}" if finding["why"] else ""
    return [
        f"{finding['id']}  {finding['statement']}",
        f"     {finding['verdict']}{why}",
        f"     measured: {finding['measured']}",
        f"     expected: {finding['expected']}",
        f"     because:  {finding['because']}",
        f"     how:      {finding['how']}",
        f"     lesson:   {finding['lesson']}",
    ]
