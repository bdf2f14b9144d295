"""The way from a lesson to the learner's copy of its lab, and on to the next lesson. Oracle: the files that links name."""

from __future__ import annotations

import json
import re

import pytest

from llmcourse.workbook import author, your_copy
from llmcourse.workbook.course import PACKAGE, Course
from llmcourse.workbook.signposts import Link, around
from llmcourse.workbook.source import CHECK_OUTPUT, SourceCell, read_source
from tests.fake_course import NAME

REPOSITORY = Course(PACKAGE.parent)
LINK = r"\]\(([^)]+)\)"


def test_a_lesson_ends_with_one_link_to_the_copy_as_a_reader_has_it(built):
    last = json.loads((built.root / "notebooks" / f"{NAME}.ipynb").read_text())["cells"][-1]
    output, = last["outputs"]
    assert re.findall(LINK, "".join(output["data"]["text/markdown"])) == [f"../work/{NAME}.ipynb"]


def test_the_cell_makes_the_copy_on_the_way(course, work, capsys, monkeypatch):
    work.parent.joinpath("notebooks").mkdir()
    monkeypatch.chdir(work.parent / "notebooks")
    your_copy("90")
    assert (work / f"{NAME}.ipynb").is_file() and f"../work/{NAME}.ipynb" in capsys.readouterr().out


def test_a_copy_that_cannot_be_made_is_one_line(course, work, capsys):
    work.write_text("a file")
    your_copy("90")
    assert "could not be made" in (said := capsys.readouterr().out) and said.count("\n") == 1


@pytest.mark.parametrize("kind", ["exercise", "solution"])
def test_every_lab_links_to_the_next_lesson_and_to_files_that_are_there(kind):
    names = author.sources(REPOSITORY)
    for name, after in zip(names, [*names[1:], None]):
        first, *_, last = [cell.source for _, cell in around(kind, name, [SourceCell(1, "x = 1", "own")], names)]
        assert f"../work/{name}.ipynb" in first
        targets = re.findall(LINK, last)
        assert targets == ([f"../notebooks/{after}.ipynb"] if after else [])
        assert all((REPOSITORY.root / "authoring" / target[13:-6]).is_dir() for target in targets)


def test_a_mark_for_the_tests_becomes_a_tag(tmp_path):
    file = tmp_path / "lab.py"
    file.write_text(f"# %%\n{CHECK_OUTPUT}\nprint(1)\n\n# %% tags=[\"mine\"]\n{CHECK_OUTPUT}\n# why\nprint(2)\n")
    assert [(cell.source, cell.tags) for cell in read_source(file)] == [
        ("print(1)", ("nbval-check-output",)), ("# why\nprint(2)", ("mine", "nbval-check-output"))]


def test_nbval_reads_that_tag():
    from nbval.plugin import find_metadata_tags

    assert dict(find_metadata_tags({"tags": ["nbval-check-output"]})) == {"check": True}


def test_a_link_as_text_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(Link("Here", tmp_path / "a" / "b.ipynb")) == "Here: a/b.ipynb"
