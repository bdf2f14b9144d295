"""Where the article and its statements are spoken of: docs/claims.md, and the lessons and labs that link to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llmcourse.claims import claims
from llmcourse.claims.page import FILE, page
from llmcourse.workbook.source import read_source

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "authoring").glob("*/l*.py"))
LINK = "../docs/claims.md"
LONGEST = 95  # characters of a line of code that fit a notebook's page


def texts(source: Path) -> str:
    """The text cells of a lesson or lab, lines joined, code spans and formulas left as they are."""
    return " ".join(" ".join(cell.source.split()) for cell in read_source(source) if cell.role == "text")


def unlinked(text: str) -> list[str]:
    """What a text names without having linked it: the article, and statements by their number."""
    lacks = []
    first = re.search(r"\barticle(?:'s|’s)?\b", text)
    if first and LINK not in text[max(0, first.start() - 200) : first.end() + 200]:
        lacks.append("the article")
    for number in dict.fromkeys(re.findall(r"\bC\d\d\b", text)):
        if f"[{number}]({LINK}#{number.lower()})" not in text:
            lacks.append(number)
    return lacks


def test_the_page_is_what_the_ledger_says():
    assert FILE.read_text("utf-8") == page(), "run python -m llmcourse.claims.page"


@pytest.mark.parametrize("source", SOURCES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_lesson_that_speaks_of_the_article_links_to_its_statements(source):
    assert unlinked(texts(source)) == []


@pytest.mark.parametrize("text, lacks", [
    ("The article says so.", ["the article"]), ("C13 holds.", ["C13"]),
    (f"The [article]({LINK}) says so, as [C13]({LINK}#c13). C13 again.", []), ("Particles.", []),
])
def test_a_missing_link_is_seen(text, lacks):
    assert unlinked(text) == lacks


def test_links_lead_to_sections_that_are_there():
    sections = {f"#{one.id.lower()}" for one in claims()}
    used = {hit for source in SOURCES for hit in re.findall(rf"{re.escape(LINK)}(#c\d\d)", texts(source))}
    assert used <= sections


LESSONS = [source for source in SOURCES if source.stem == "lesson"]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda file: file.parent.name)
def test_a_lessons_lines_of_code_fit_the_page(lesson):
    code = (line for cell in read_source(lesson) if cell.role != "text" for line in cell.source.splitlines())
    assert [line for line in code if len(line) > LONGEST] == []
