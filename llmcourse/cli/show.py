"""What the commands print: numbers, JSON, tokens above their ids."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from llmcourse.engine.request import Result

_TOKEN_STYLES = ("black on #9ecae1", "black on #fdd0a2", "black on #c7e9c0", "black on #dadaeb")


def write(text: str) -> None:
    """Put text on stdout now."""
    sys.stdout.write(text)
    sys.stdout.flush()


def write_json(fields: dict) -> None:
    """One JSON object on one line of stdout."""
    typer.echo(json.dumps(fields, ensure_ascii=False))


def console() -> Console:
    """A rich console on stdout: colours on a terminal only, and none where NO_COLOR is set."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def milliseconds(seconds: float) -> str:
    """Three digits that matter: "8.53 ms", "31.2 ms", "1,240 ms"."""
    value = seconds * 1000
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f} ms"


def numbers(result: Result, model) -> str:
    """The line at the end: prompt tokens, output tokens, TTFT, mean ITL, tokens/s, and what ran where."""
    n_prompt, n_output = len(result.prompt_ids), len(result.output_ids)
    parts = [f"{n_prompt} prompt token{'s' * (n_prompt != 1)}", f"{n_output} output token{'s' * (n_output != 1)}"]
    if result.ttft_s is not None:
        parts.append(f"TTFT {milliseconds(result.ttft_s)}")
    if result.itl_s:
        parts.append(f"mean ITL {milliseconds(sum(result.itl_s) / len(result.itl_s))}")
    parts.append(f"{result.tokens_per_s:.1f} tokens/s")
    parts.append(f"{model.name}, {dtype_name(model)}, {model.device}")
    endings = {"cancelled": "stopped by Ctrl-C", "length": "stopped by the length limit"}
    if result.finish_reason in endings:
        parts.append(endings[result.finish_reason])
    return " · ".join(parts)


def dtype_name(model) -> str:
    """"float32" for torch.float32."""
    return str(model.dtype).removeprefix("torch.")


def gloss(pieces: Sequence[str], ids: Sequence[int], width: int, indent: str = "") -> list[Text]:
    """Tokens with their ids below, as many to a row as fit into `width` columns; colours mark the token borders.

    Columns are aligned, so that the borders are seen without colours too.
    """
    from rich.cells import cell_len
    from rich.text import Text

    columns = [max(cell_len(piece), len(str(number))) for piece, number in zip(pieces, ids)]
    rows = []
    for row in fill(columns, width - len(indent)):
        top, bottom = Text(indent), Text(indent)
        for n in row:
            label = str(ids[n])
            top.append(pieces[n], _TOKEN_STYLES[n % len(_TOKEN_STYLES)])
            top.append(" " * (columns[n] - cell_len(pieces[n]) + 1))
            bottom.append(label + " " * (columns[n] - len(label) + 1), "dim")
        top.rstrip()
        bottom.rstrip()
        rows += [top, bottom]
    return rows


def fill(columns: Sequence[int], width: int) -> list[list[int]]:
    """Numbers of columns, row by row: as many to a row as fit with a space between, at least one."""
    rows: list[list[int]] = []
    used = width + 1
    for n, column in enumerate(columns):
        if used + column > width:
            rows.append([])
            used = 0
        rows[-1].append(n)
        used += column + 1
    return rows
