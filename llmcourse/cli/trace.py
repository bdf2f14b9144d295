"""`llmcourse generate --trace`: the pipeline, step by step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from llmcourse.cli import show

if TYPE_CHECKING:
    from rich.console import Console

    from llmcourse.engine.token_stream import Stream, Token

_PIECE_COLUMNS, _BAR_COLUMNS = 18, 30
_EIGHTHS = ("", *"▏▎▍▌▋▊▉")


def show_trace(stream: Stream) -> bool:
    """Print the prompt's tokens, then every step, then the text. Returns whether Ctrl-C stopped it."""
    console, tokenizer = show.console(), stream.engine.tokenizer
    ids, interrupted = stream.request.prompt_ids, False
    console.print(f"prompt: {len(ids)} tokens", style="bold")
    for row in show.gloss(tokenizer.tokens(ids), ids, console.width, indent="  "):
        console.print(row)
    console.print("next token: id, text, probability before temperature and filters; → marks the one that was chosen")
    try:
        n_computed = stream.request.n_missing
        for step, token in enumerate(stream, 1):
            show_step(console, tokenizer, step, n_computed, token)
            n_computed = stream.request.n_missing
    except KeyboardInterrupt:
        stream.close()
        interrupted = True
    console.print("text", style="bold")
    console.print(stream.result.text)
    return interrupted


def show_step(console: Console, tokenizer, step: int, n_computed: int, token: Token) -> None:
    """A step's heading, then a row for each of the likeliest tokens, and for the chosen one if it is not among them.

    The heading says how many tokens the step computed: the whole prompt first, one at a time after that (with a cache).
    """
    from rich.text import Text

    tokens = f"{n_computed} token{'s' * (n_computed != 1)}"
    console.print(f"step {step}: computed {tokens} in {show.milliseconds(token.seconds)}", style="bold")
    rows = list(token.logprobs.top)
    if token.id not in dict(rows):
        rows.append((token.id, token.logprobs.chosen))
    for (number, logprob), piece in zip(rows, tokenizer.tokens(number for number, _ in rows)):
        probability, chosen = math.exp(logprob), number == token.id
        mark, style, bar_style = ("→", "green", "green") if chosen else (" ", "", "blue")
        row = Text(f"  {mark} {number:>6}  {fit(piece)} {probability:>6.1%}  ", style)
        row.append(bar(probability), bar_style)
        console.print(row)


def bar(share: float) -> str:
    """A bar as long as `share` of its columns, in steps of an eighth of a column."""
    whole, eighths = divmod(round(share * _BAR_COLUMNS * 8), 8)
    return "█" * whole + _EIGHTHS[eighths]


def fit(piece: str) -> str:
    """A token's text in a column of fixed width, cut with … where it is too long."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(piece) > _PIECE_COLUMNS:
        return set_cell_size(piece, _PIECE_COLUMNS - 1) + "…"
    return set_cell_size(piece, _PIECE_COLUMNS)
