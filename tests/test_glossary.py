"""The glossary has every letter and word of the lessons' notation boxes, in order, each once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BOX_HEADS = ("letter", "letter or word", "word", "term")
SOURCES = sorted(ROOT.glob("authoring/*/l[ae][bs]*.py"))


def rows(text: str) -> list[list[str]]:
    """Cells of every table row of a Markdown text."""
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines()
            if line.strip().startswith("|")]


def glossary() -> list[list[str]]:
    """Every entry of the glossary."""
    return [row for row in rows((ROOT / "docs" / "glossary.md").read_text("utf-8"))
            if row[0] not in BOX_HEADS and not row[0].startswith("---")]


def known() -> set[str]:
    """Every name that the glossary explains, in lower case where it is a word."""
    return {one.strip() for row in glossary() for one in row[0].split(",")}


def box(source: Path) -> list[str]:
    """The first column of a lesson's or lab's notation box: the first table of its text."""
    lines = [line[1:].strip() for line in source.read_text("utf-8").splitlines() if line.startswith("#")]
    table = re.search(r"(?:^\|.*\n?)+", "\n".join(lines), re.M)
    return [row[0] for row in rows(table[0])[2:]] if table else []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_entry_of_a_notation_box_is_in_the_glossary(source):
    names = [one.strip().strip("*`$") for entry in box(source) for one in entry.split(",")]
    assert names, f"{source} has no notation box"
    assert [name for name in names if name not in known()] == []


def test_words_stand_in_alphabetical_order_each_once():
    words = [row[0] for row in glossary() if len(row) == 2]
    assert words == sorted(words, key=lambda word: re.sub(r"[^a-z]", "", word.lower().split(",")[0]))
    assert len(words) == len(set(words)) > 40
