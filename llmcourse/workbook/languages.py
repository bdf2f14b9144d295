"""One sentence in many languages, written for the course: `sentences()`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sentence:
    """"My mother drinks tea every morning and reads the newspaper." in one language.

    text: in Unicode's normal form NFC. script: what it is written in.
    """

    language: str
    script: str
    text: str


def sentences() -> dict[str, Sentence]:
    """Language → the sentence, English first. The translations are the course's own."""
    file = Path(__file__).parent / "data" / "languages.json"
    return {row["language"]: Sentence(**row) for row in json.loads(file.read_text("utf-8"))}
