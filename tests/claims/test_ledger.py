"""The ledger of the article's statements: every entry is whole, and belongs to a lesson that speaks of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llmcourse.checks import LESSONS
from llmcourse.claims import CORRECTED, FAILS, HOLDS, Claim, Finding, Found, claim, claims, ledger
from llmcourse.errors import CourseError

ROOT = Path(__file__).resolve().parents[2]
FIELDS = ["id", "statement", "lesson", "expected", "because", "measured", "verdict", "why", "how"]
ENTRIES = claims()


@pytest.mark.parametrize("ids, named", [(["C99"], "C99"), (["C10", "X1", "C98"], "X1, C98")])
def test_unknown_ids_are_an_error_that_names_them_and_what_there_is(ids, named):
    with pytest.raises(CourseError, match=rf"no statement {named} in the ledger; it has: C01, C02"):
        claims(ids)


def test_ids_come_in_the_order_asked_for_in_either_case():
    assert [one.id for one in claims(["c10", "C01"])] == ["C10", "C01"]


def test_without_ids_all_come_in_order_each_once():
    ids = [one.id for one in ENTRIES]
    assert ids == sorted(set(ids)) and len(ids) >= 5


def test_an_id_of_another_lesson_cannot_be_taken(monkeypatch):
    monkeypatch.setattr(ledger, "_LEDGER", dict(ledger._LEDGER))
    with pytest.raises(CourseError, match="C10 is in the ledger twice"):
        claim("C10", "again", expected="", because="", how="", lessons=("01",))(lambda: Found("", HOLDS))


def test_no_two_modules_enter_the_same_id():
    entered = [found for file in (ROOT / "llmcourse" / "claims").glob("*.py")
               for found in re.findall(r'@claim\(\s*"(C\d+)"', file.read_text("utf-8"))]
    assert sorted(entered) == [one.id for one in ENTRIES]


@pytest.mark.parametrize("one", ENTRIES, ids=lambda one: one.id)
def test_a_statement_names_lessons_of_the_course_and_the_first_one_speaks_of_it(one):
    assert one.lessons and set(one.lessons) <= set(LESSONS)
    number = one.lessons[0]
    lesson = ROOT / "authoring" / f"{number}_{LESSONS[number]}" / "lesson.py"
    assert re.search(rf"\b{one.id}\b", lesson.read_text("utf-8"))


@pytest.mark.parametrize("one", ENTRIES, ids=lambda one: one.id)
def test_a_statement_says_what_is_expected_why_that_is_the_bound_and_how_it_is_measured(one):
    assert re.fullmatch(r"C\d\d", one.id) and one.statement and one.expected and one.because and one.how


@pytest.mark.parametrize("verdict, why", [(HOLDS, ""), (CORRECTED, "by more"), (FAILS, "the cache is warm")])
def test_a_finding_as_json_has_the_documented_fields_all_of_them_text(verdict, why):
    one = Claim("C77", "water is wet", ("00", "06"), "wet", "it is", "by hand", lambda: Found("3 drops", verdict, why))
    fields = one.check().as_json()
    assert list(fields) == FIELDS and all(isinstance(value, str) for value in fields.values())
    assert (fields["lesson"], fields["measured"], fields["verdict"], fields["why"]) == ("00, 06", "3 drops", verdict, why)


def test_a_finding_reads_as_one_sentence():
    one = Claim("C77", "water is wet", ("00",), "wet", "it is", "by hand", lambda: Found("", HOLDS))
    assert str(Finding(one, Found("3 drops", CORRECTED, "mostly"))) == (
        "C77, water is wet: holds with a correction (mostly). Measured: 3 drops."
    )  # fmt: skip
