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


def whose(owners: list[str], roster: list[str]) -> dict[str, str]:
    return match(owners, roster)[0]


def doubtful(owners: list[str], roster: list[str]) -> list[str]:
    found, doubts = match(owners, roster)
    assert not set(found) & set(doubts)
    return sorted(doubts)


def test_a_submission_belongs_to_the_same_name():
    assert whose(["Ana"], ["ana", "anabel"]) == {"Ana": "ana"}


def test_an_id_counts_where_it_stands_as_a_whole_word():
    found = whose(["4711_late_lab1", "47110_lab1", "lab-4712", "other"], ["4711", "4712"])
    assert found == {"4711_late_lab1": "4711", "lab-4712": "4712"}


def test_of_two_ids_one_in_the_other_the_longer_is_meant():
    assert whose(["li-wei-lab"], ["li", "li-wei"]) == {"li-wei-lab": "li-wei"}


def test_a_name_that_fits_two_students_is_nobodys_and_says_whose_it_could_be():
    assert doubtful(["ana-ben", "ana"], ["ana", "ben"]) == ["ana-ben"]
    assert "ana, ben" in match(["ana-ben"], ["ana", "ben"])[1]["ana-ben"]


def test_beside_a_students_own_folder_another_with_the_id_in_its_name_is_nobodys():
    assert doubtful(["bob alexandra", "alexandra"], ["alexandra"]) == ["bob alexandra"]
