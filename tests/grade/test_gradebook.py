"""grades.csv."""

from __future__ import annotations

import csv

import pytest

from llmcourse.grade.gradebook import write_grades


def result(name: str, **changes) -> dict:
    fields = dict(
        submission=name,
        student=None,
        lesson="01",
        status="ok",
        score=3,
        max=4,
        previous=None,
        isolation="namespace",
        seconds=0.5,
        reason="",
        exercises=[{"name": "f", "score": 3}],
    )
    return {**fields, **changes}


def rows(tmp_path, *results) -> list[dict]:
    write_grades(tmp_path / "grades.csv", results)
    with open(tmp_path / "grades.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_each_exercise_has_a_column_that_is_empty_where_it_does_not_apply(tmp_path):
    first, second = rows(tmp_path, result("ana"), result("ben", lesson="02", exercises=[{"name": "g", "score": 0}]))
    assert (first["01.f"], first["02.g"]) == ("3", "")
    assert (second["01.f"], second["02.g"]) == ("", "0")


def test_the_score_before_stands_beside_the_new_one(tmp_path):
    (row,) = rows(tmp_path, result("ana", previous={"score": 1.5}))
    assert (row["score"], row["max"], row["previous_score"]) == ("3", "4", "1.5")


def test_no_cell_is_a_formula_for_a_spreadsheet(tmp_path):
    (row,) = rows(tmp_path, result('=HYPERLINK("x")', reason="@SUM(A1)"))
    assert row["submission"].startswith("'=") and row["reason"].startswith("'@")


@pytest.mark.parametrize("text", ["+1", "-1+1", " =1", "＝1", "|cmd", "%1", "\t=1"])
def test_no_kind_of_formula_is_one(tmp_path, text):
    (row,) = rows(tmp_path, result(text, student=text))
    assert row["submission"][0] in "'\\" and row["student"][0] in "'\\"


def test_characters_that_are_not_seen_are_shown(tmp_path):
    (row,) = rows(tmp_path, result("ana\u202e\u200b"))
    assert row["submission"] == "ana\\u202e\\u200b"


def test_names_in_any_script_survive(tmp_path):
    (row,) = rows(tmp_path, result('Ñandú, 提出物 "x"'))
    assert row["submission"] == 'Ñandú, 提出物 "x"'
