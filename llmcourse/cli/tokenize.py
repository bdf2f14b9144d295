"""`llmcourse tokenize`: what a tokenizer makes of a text."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from llmcourse.cli import show
from llmcourse.cli.options import AsJson, Model
from llmcourse.cli.prompt import read_text

Text = Annotated[
    Optional[str],
    typer.Argument(metavar="TEXT", help="The text. Left out, or -: read it from stdin.", show_default=False),
]
Special = Annotated[
    bool, typer.Option("--special", help="Read <|im_end|> and the like as special tokens, not as ordinary text.")
]


def tokenize(text: Text = None, special: Special = False, model: Model = None, as_json: AsJson = False) -> None:
    """Show a text's tokens with their ids.

    A space inside a token is shown as ␣, the bytes of half a character as \\xe4.

    [bold]Examples[/bold]

    llmcourse tokenize "Tokenization isn't magic: 2 × 12"

    llmcourse tokenize --json < letter.txt

    llmcourse tokenize "the same text" --model gpt2
    """
    from llmcourse.model.hub import tokenizer_folder
    from llmcourse.text.tokenizer import Tokenizer

    text = read_text(text, "TEXT")
    tokenizer = Tokenizer.from_folder(tokenizer_folder(model))  # as load_tokenizer, without importing torch
    ids = tokenizer.encode(text, special=special)
    pieces = tokenizer.tokens(ids)
    if as_json:
        show.write_json({"ids": ids, "tokens": pieces})
        return
    console = show.console()
    for row in show.gloss(pieces, ids, console.width):
        console.print(row)
    n_bytes = len(text.encode("utf-8", "replace"))
    per_token = f", {len(text) / len(ids):.2f} characters per token" if ids else ""
    typer.echo(f"{len(ids)} tokens, {len(text)} characters, {n_bytes} bytes{per_token}", err=True)
