"""Options that several commands share: same name, same meaning, same help."""

from __future__ import annotations

import os
from typing import Annotated, Optional

import typer

FAILED, USAGE, INTERRUPTED = 1, 2, 130  # exit codes, beside 0
MODEL, SAMPLING, OUTPUT = "Model", "Sampling", "Output"

Model = Annotated[
    Optional[str],
    typer.Option(
        help="A folder of safetensors, a .gguf file or a hub id. Without it: SmolLM2-135M-Instruct.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.", rich_help_panel=MODEL)]
Dtype = Annotated[
    str,
    typer.Option(help="auto, float32, bfloat16, float16 or float64. auto: float32 on the CPU.", rich_help_panel=MODEL),
]
PartsName = Annotated[
    Optional[str],
    typer.Option(
        "--parts",
        help="Table of parts: reference (to be read) or cpu (fast). Without it: the fastest for the device.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
CacheName = Annotated[
    str,
    typer.Option(
        "--cache",
        help="contiguous, int8, int4, window:TOKENS+SINKS, or none: every token anew in every step.",
        rich_help_panel=MODEL,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.", rich_help_panel=OUTPUT)]


def with_folder(args: list[str]) -> list[str]:
    """`--mine` may stand alone or before a folder: give it the folder if the next word is one, else an empty value.

    A word that is written like a path ("/nosuch", "./work", "~/labs") is a folder whether or not it is there.
    """
    given = list(args)
    for i, word in enumerate(given):
        if word == "--mine":
            folder = given[i + 1] if i + 1 < len(given) and _is_folder(given[i + 1]) else ""
            return [*given[:i], f"--mine={folder}", *given[i + 1 + bool(folder) :]]
    return given


def _is_folder(word: str) -> bool:
    looks_so = word.startswith(("/", "./", "../", "~", ".\\")) and not any(blank in word for blank in " \n\t")
    return looks_so or os.path.exists(word)
