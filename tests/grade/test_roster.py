"""The class list and whose submission is whose."""

from __future__ import annotations

import pytest

from llmcourse.errors import CourseError
from llmcourse.grade.roster import match, read_roster


def roster(tmp_path, text: str) -> list[str]:
    file = tmp_path / "class.csv"
    file.write_text(text, "utf-8")
    return read_roster(file)


@pytest.mark.parametrize(
    "text",
    [
        "ana\nben\n",
        "\ufeffana\n\n# a comment\n ben \n",
        "id,grade\nana,1\nben,\n",
        "Name;Login\nAna A;ana\nBen;ben\n",
        "section\tStudent ID\n1\tana\n2\tben\n",
    ],
)
def test_lists_and_tables_of_the_usual_kinds_give_the_ids(tmp_path, text):
    assert roster(tmp_path, text) == ["ana", "ben"]


@pytest.mark.parametrize("text, said", [("", "nobody"), ("id\n", "nobody"), ("ana\nben\nana\n", "ana more than once")])
def test_a_roster_that_cannot_be_used_says_why(tmp_path, text, said):
    with pytest.raises(CourseError, match=said):
        roster(tmp_path, text)


def test_a_submission_belongs_to_the_same_name():
    assert match(["Ana"], ["ana", "anabel"]) == {"Ana": "ana"}


def test_an_id_counts_where_it_stands_as_a_whole_word():
    found = match(["4711_late_lab1", "47110_lab1", "lab-4712", "other"], ["4711", "4712"])
    assert found == {"4711_late_lab1": "4711", "lab-4712": "4712"}


def test_of_several_ids_in_a_name_the_longest_is_meant():
    assert match(["li-wei-lab"], ["li", "li-wei"]) == {"li-wei-lab": "li-wei"}
