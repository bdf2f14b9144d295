"""Building notebooks, on the fake course. Each malformed source is the good one with one replacement."""

from __future__ import annotations

import json

import pytest

import llmcourse
from llmcourse.errors import AuthoringError
from llmcourse.workbook import author
from llmcourse.workbook.rules import problems
from tests.fake_course import NAME

CARD = "# *difficulty 1/5 · 5 minutes · unlocks: nothing in the engine*\n"


def edit(course, part: str, old: str, new: str) -> None:
    """Replace a text of one source file, once."""
    file = course.root / "authoring" / NAME / f"{part}.py" if part != "checks" else course.root / "checks" / f"{NAME}.py"
    text = file.read_text("utf-8")
    assert text.count(old) >= 1, old
    file.write_text(text.replace(old, new, 1), "utf-8")


def notebook(course, folder: str) -> dict:
    return json.loads((course.root / folder / f"{NAME}.ipynb").read_text("utf-8"))


def test_a_built_course_has_no_problems(built):
    assert author.check(root=built.root) == []


def test_nothing_is_built_again_when_nothing_changed(built):
    assert author.build(root=built.root) == []


@pytest.mark.parametrize("part, old, new, said", [
    ("lab", CARD, "", "twice: no effort card"),
    ("lab", "# *difficulty 1/5", "# *difficulty 6/5", "twice: no effort card"),
    ("lab", "    Example: twice([1, 5]) is [2, 10].\n", "", "worked example"),
    ("lab", "Returns n integers.", "Gives n integers.", "what it returns"),
    ("lab", "        numbers: n integers, n ≥ 0.\n", "", "argument numbers"),
    ("lab", "`add(number)` takes one integer and returns", "It takes one number and returns", "method add"),
    ("lab", "def twice(numbers: list[int])", "def twice(numbers: 'torch.Tensor')", "no shapes"),
    ("lab", '# %% check="twice"\ncheck("90.twice", twice=twice)\n', "", 'no cell with check="twice"'),
    ("lab", '# %% check="twice"', '# %% check="other"', "belongs to no answer"),
    ("lab", "    ### END SOLUTION", "    ### END SOLUTION\n    ### BEGIN SOLUTION\n    ### END SOLUTION", "2 solution regions"),
    ("lab", "    ### BEGIN SOLUTION\n", "", "without its partner"),
    ("lab", '# %% ex="Total"', '# %% ex="twice"', "2 answer cells"),
    ("lab", "    print(twice([1, 2, 3]))", "    numbers = [1]\n    print([0])\n    return [2 * number for number in numbers]",
     "solution text is left"),
    ("lab", '# %% check="twice"\n', '# %%\nfrom llmcourse.given import Total\n\n# %% check="twice"\n', "given piece of this very lab"),
    ("checks", '@probe("twice", hidden=True', '@probe("twice"', "twice: no hidden probe"),
    ("checks", 'exercise("Total"', 'exercise("Tally"', "declare"),
    ("wrong", 'edited("twice"', 'edited("Total"', "twice: 2 named wrong answers"),
    ("lesson", "# %%\nfrom", "# %% slide=1\nfrom", "unknown cell metadata slide"),
    ("lesson", "# %%\nfrom", "# %%\nimport torch\nfrom", "lesson.py imports torch before llmcourse"),
])
def test_each_malformed_source_is_named_in_one_line(own_course, part, old, new, said):
    edit(own_course, part, old, new)
    found = problems(own_course, NAME)
    assert [line for line in found if said in line], found
    assert all("\n" not in line for line in found)


def test_a_malformed_source_is_not_built(own_course):
    edit(own_course, "lab", CARD, "")
    with pytest.raises(AuthoringError, match="effort card"):
        author.build(root=own_course.root)


def test_a_changed_source_makes_its_notebooks_stale(own_course):
    edit(own_course, "lab", "Now see it run.", "Now watch it run.")
    assert author.check(root=own_course.root) == [f"{folder}/{NAME}.ipynb is stale: run llmcourse author build 90"
                                                  for folder in ("exercises", "solutions")]


def test_a_notebook_changed_by_hand_is_named_and_not_overwritten(own_course):
    content = notebook(own_course, "exercises")
    content["cells"][0]["source"] = ["# My own title"]
    file = own_course.root / "exercises" / f"{NAME}.ipynb"
    file.write_text(json.dumps(content))
    assert "was changed by hand" in author.check(root=own_course.root)[0]
    edit(own_course, "lab", "Now see it run.", "Now watch it run.")
    with pytest.raises(AuthoringError, match="changed by hand"):
        author.build(root=own_course.root)
    assert "My own title" in file.read_text()


def first_code(nb: dict) -> dict:
    return next(cell for cell in nb["cells"] if cell["cell_type"] == "code")


@pytest.mark.parametrize("spoil, said", [
    (lambda nb: first_code(nb)["outputs"].append({"output_type": "error", "ename": "E", "evalue": "v", "traceback": []}), "an output is an error"),
    (lambda nb: first_code(nb).update(execution_count=None), "not every cell was executed"),
    (lambda nb: nb["cells"][1].update(id=nb["cells"][0]["id"]), "ids are not unique"),
])
def test_a_spoiled_notebook_is_named(own_course, spoil, said):
    content = notebook(own_course, "solutions")
    spoil(content)
    (own_course.root / "solutions" / f"{NAME}.ipynb").write_text(json.dumps(content))
    assert [line for line in author.check(root=own_course.root) if said in line]


def test_a_missing_and_an_orphaned_notebook_are_named(own_course):
    file = own_course.root / "notebooks" / f"{NAME}.ipynb"
    file.rename(file.with_name("91_gone.ipynb"))
    assert author.check(root=own_course.root) == [f"notebooks/{NAME}.ipynb is missing: run llmcourse author build 90",
                                                  "notebooks/91_gone.ipynb has no source in authoring/"]


def test_a_course_without_lessons_is_a_problem(tmp_path):
    (tmp_path / "authoring").mkdir()
    assert author.check(root=tmp_path) == ["authoring/ has no lessons"]


def test_building_again_gives_the_same_bytes(own_course):
    files = [own_course.root / folder / f"{NAME}.ipynb" for folder in author.FOLDERS.values()]
    before = [file.read_bytes() for file in files]
    author.build(["90"], root=own_course.root)
    assert [file.read_bytes() for file in files] == before


def test_the_notebook_says_what_it_was_made_of(built):
    mark = notebook(built, "exercises")["metadata"]["llmcourse"]
    assert (mark["lesson"], mark["kind"], mark["version"]) == ("90", "exercise", llmcourse.__version__)
    assert [one["name"] for one in mark["exercises"]] == ["twice", "Total"]


def test_an_exercise_is_not_executed_and_holds_no_solution(built):
    content = notebook(built, "exercises")
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert "2 * number" not in json.dumps(content)


def test_inserting_a_cell_moves_no_other_cells_id(own_course):
    before = {cell["id"] for cell in author.generate(own_course, NAME, "exercise")["cells"]}
    edit(own_course, "lab", "# %%\nwith your_code", "# %%\nprint('new')\n\n# %%\nwith your_code")
    after = {cell["id"] for cell in author.generate(own_course, NAME, "exercise")["cells"]}
    assert before < after and len(after) == len(before) + 1


def test_a_cell_that_raises_stops_the_build_and_is_named(own_course):
    edit(own_course, "lesson", "sum([1, 2, 3] * 2)", "1 / 0")
    with pytest.raises(AuthoringError, match="ZeroDivisionError"):
        author.build(root=own_course.root)


def test_a_new_lesson_overwrites_nothing(own_course):
    with pytest.raises(AuthoringError, match="exists already"):
        author.new(NAME, root=own_course.root)


@pytest.mark.parametrize("name", ["fake", "1_x", "01-x", "01_X", ""])
def test_a_lesson_has_a_number_and_a_name(tmp_path, name):
    with pytest.raises(AuthoringError, match="digits"):
        author.new(name, root=tmp_path)


def test_a_lesson_that_the_course_does_not_list_is_refused():
    with pytest.raises(AuthoringError, match="one_prompt"):
        author.new("00_other")
