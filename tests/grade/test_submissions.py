"""Which files are graded under which names. Everything is written into a temporary folder."""

from __future__ import annotations

import os
import unicodedata

import pytest

from llmcourse.errors import CourseError
from llmcourse.grade.submissions import as_file_name, find, read_content


def put(folder, *names: str) -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")


def names(found) -> list[str]:
    return [one.name for one in found]


def test_a_folder_of_notebooks_gives_one_submission_for_each(tmp_path):
    put(tmp_path, "ben.ipynb", "ana.ipynb", "notes.txt", ".hidden.ipynb", ".ipynb_checkpoints/ana-checkpoint.ipynb")
    assert names(find([tmp_path])) == ["ana", "ben"]


def test_a_folder_for_each_student_is_named_as_the_folder_at_any_depth(tmp_path):
    put(tmp_path, "ana/lab 1 final.ipynb", "ben/a/b/01_tokenizer.ipynb", "ben/.ipynb_checkpoints/x.ipynb")
    assert names(find([tmp_path])) == ["ana", "ben"]


def test_several_notebooks_of_one_student_have_the_students_name_first(tmp_path):
    put(tmp_path, "ana/00_one_prompt.ipynb", "ana/old/01_tokenizer.ipynb")
    assert names(find([tmp_path])) == ["ana/00_one_prompt", "ana/old/01_tokenizer"]


def test_a_student_without_a_notebook_has_a_row_that_says_so(tmp_path):
    put(tmp_path, "ana/essay.pdf")
    (one,) = find([tmp_path])
    assert one.name == "ana" and "no notebook" in one.error


def test_single_files_may_have_any_suffix(tmp_path):
    put(tmp_path, "answers.json")
    assert names(find([tmp_path / "answers.json"])) == ["answers.json"]


def test_the_same_file_in_two_paths_is_one_submission(tmp_path):
    put(tmp_path, "ana.ipynb")
    assert names(find([tmp_path, tmp_path / "ana.ipynb"])) == ["ana"]


def test_equal_names_are_told_apart_in_tables_and_in_files(tmp_path):
    put(tmp_path, "a/x.ipynb", "b/x.ipynb", "b/X.ipynb")
    found = find([tmp_path / "a", tmp_path / "b"])
    assert sorted(names(found)) == ["X", "x", "x~2"]
    assert len({one.file_name.casefold() for one in found}) == 3


def test_names_that_differ_only_in_the_form_of_an_accent_get_different_files(tmp_path):
    forms = [unicodedata.normalize(form, "é") for form in ("NFC", "NFD")]
    put(tmp_path, *(f"{form}.ipynb" for form in forms))
    if len(os.listdir(tmp_path)) < 2:
        pytest.skip("this file system takes the two forms for one name")
    found = find([tmp_path])
    assert len({one.file_name for one in found}) == 2


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "a/b", "..", ".hidden", "x" * 300, "CON", "nul.txt", "日" * 200, "a\nb", "\ud800", "?*:"],
)
def test_file_names_stay_inside_their_folder_and_are_valid_everywhere(name):
    made = as_file_name(name)
    assert made and not set(made) & set('/\\:*?"<>|\n') and not made.startswith(".")
    assert len(made.encode("utf-8", "replace")) <= 200 and made.upper() not in ("CON", "NUL.TXT")


def test_folders_to_skip_are_not_looked_into(tmp_path):
    put(tmp_path, "ana.ipynb", "graded/reports/x.ipynb")
    assert names(find([tmp_path], skip=[tmp_path / "graded"])) == ["ana"]


def test_nothing_to_grade_is_an_error_that_names_the_path(tmp_path):
    with pytest.raises(CourseError, match="nothing to grade"):
        find([tmp_path])
    with pytest.raises(CourseError, match="there is no .*missing"):
        find([tmp_path / "missing"])


def test_a_link_to_a_neighbours_notebook_is_not_followed(tmp_path):
    put(tmp_path, "ben.ipynb")
    (tmp_path / "ana.ipynb").symlink_to(tmp_path / "ben.ipynb")
    ana, _ = find([tmp_path])
    with pytest.raises(OSError, match="link"):
        read_content(ana.path)


def test_a_linked_folder_is_not_looked_into(tmp_path):
    put(tmp_path, "elsewhere/ben.ipynb", "class/cy.ipynb")
    (tmp_path / "class" / "ana").symlink_to(tmp_path / "elsewhere")
    assert names(find([tmp_path / "class"])) == ["cy"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "ana.ipynb")
    with pytest.raises(OSError, match="ordinary"):
        read_content(tmp_path / "ana.ipynb")
