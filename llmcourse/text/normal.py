"""Normalization: what is done to a text before it is cut, as the "normalizer" section of tokenizer.json says."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Union

from llmcourse.errors import TokenizerError


@dataclass(frozen=True)
class Prepend:
    """Put `text` before a text that is not empty (Llama 2: "▁", the space before the first word)."""

    text: str


@dataclass(frozen=True)
class Replace:
    """Write `new` for every `old` (Llama 2: "▁" for a space)."""

    old: str
    new: str


Step = Union[Prepend, Replace, str]  # evaluated when imported, so in the old spelling
Steps = Sequence[Step]


def normalize(text: str, steps: Steps | str | None) -> str:
    """`text` after each step in turn: the name of a Unicode normal form ("NFC"), `Prepend` or `Replace`.

    A single name is one step; None leaves the text as it is.
    """
    for step in (steps,) if isinstance(steps, str) else steps or ():
        if isinstance(step, Prepend):
            text = text and step.text + text
        elif isinstance(step, Replace):
            text = text.replace(step.old, step.new)
        else:
            text = unicodedata.normalize(step, text)
    return text


def read_normalizer(section: dict | None) -> tuple[Step, ...]:
    """The "normalizer" section of tokenizer.json. Raises TokenizerError naming what is not known."""
    return tuple(_read_step(part) for part in flatten(section, "normalizers"))


def flatten(section: dict | None, children: str) -> Iterator[dict]:
    """The sections inside nested Sequences, in order."""
    if section is None:
        return
    if section["type"] != "Sequence":
        yield section
        return
    for child in section[children]:
        yield from flatten(child, children)


def _read_step(part: dict) -> Step:
    kind = part["type"]
    if kind == "NFC":
        return kind
    if kind == "Prepend":
        return Prepend(part["prepend"])
    if kind == "Replace" and "String" in part["pattern"]:
        return Replace(part["pattern"]["String"], part["content"])
    how = " by a regex" if kind == "Replace" else ""
    raise TokenizerError(f"the normalizer {kind}{how} is not supported; only NFC, Prepend and Replace of a plain text")
