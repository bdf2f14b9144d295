"""`llmcourse claims`: what is printed, the fields, and ids that do not exist."""

from __future__ import annotations

import json

FIELDS = ["id", "statement", "lesson", "expected", "because", "measured", "verdict", "why", "how"]


def test_a_statement_is_shown_with_its_verdict_its_numbers_and_its_lesson(run):
    lines = run("claims", "C03").out.splitlines()
    assert lines[0].startswith("C03  “How does inference work?” becomes the ids [2437, 1374")
    assert lines[1] == "     does not hold here: the printed ids mean “How How inference work?”"
    assert lines[2] == "     measured: [2437, 857, 32278, 670, 30]"
    assert [line.split(":")[0].strip() for line in lines[3:7]] == ["expected", "because", "how", "lesson"] and lines[6].endswith("01")


def test_a_verdict_without_a_correction_stands_alone(run):
    assert run("claims", "c15").out.splitlines()[1] == "     holds"


def test_json_is_one_object_with_the_documented_fields_in_the_order_asked_for(run):
    out = run("claims", "C02", "C01", "--json").out
    found = json.loads(out)["claims"]
    assert out.count("\n") == 1 and [one["id"] for one in found] == ["C02", "C01"]
    assert [list(one) for one in found] == [FIELDS, FIELDS]


def test_an_unknown_id_is_a_one_line_error_before_anything_is_measured(run):
    ran = run("claims", "C01", "C99")
    assert (ran.code, ran.out) == (1, "") and ran.err.startswith("error: no statement C99 in the ledger")
