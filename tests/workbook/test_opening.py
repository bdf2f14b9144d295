"""The learner's copies: what is carried over when a lab changes, and what is never lost."""

from __future__ import annotations

import json

import pytest

from llmcourse.errors import CourseError, UnknownLesson
from llmcourse.workbook import author
from llmcourse.workbook.opening import open_lab, reset
from tests.fake_course import NAME, answered

TWICE = "def twice(numbers):\n    return [n + n for n in numbers]"


def cells(path) -> list[dict]:
    content = json.loads(path.read_text("utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in content]


def sources(path) -> list[str]:
    return [cell["source"] for cell in cells(path)]


def change_lab(course) -> None:
    """A new version of the lab: another text, and a longer docstring in the stub of Total."""
    file = course.root / "authoring" / NAME / "lab.py"
    text = file.read_text("utf-8").replace("Now see it run.", "Now watch it run.").replace("Adds up what", "Sums up what")
    file.write_text(text, "utf-8")
    author.write_notebook(course.exercise("90"), author.generate(course, NAME, "exercise"))


def test_a_lab_is_copied_once_and_then_left_alone(course, work):
    first = open_lab(course, "90", work)
    answered(course.exercise("90"), first.path, twice=TWICE)
    before = first.path.read_bytes()
    assert (first.what, open_lab(course, "90", work).what) == ("copied", "kept")
    assert first.path.read_bytes() == before


def test_a_changed_lab_takes_the_answers_along_and_keeps_the_old_copy(own_course, work):
    path = open_lab(own_course, "90", work).path
    before = answered(own_course.exercise("90"), path, twice=TWICE).read_bytes()
    change_lab(own_course)
    opened = open_lab(own_course, "90", work)
    assert (opened.what, opened.carried) == ("updated", ("twice",))
    assert opened.backup.read_bytes() == before
    text = "\n".join(sources(path))
    assert TWICE in text and "Now watch it run." in text and "Sums up what" in text and "Adds up what" not in text
    assert open_lab(own_course, "90", work).what == "kept"


def test_cells_that_the_learner_added_or_changed_stay_where_they_were(own_course, work):
    path = open_lab(own_course, "90", work).path
    content = json.loads(path.read_text("utf-8"))
    at = [cell["id"] for cell in content["cells"]].index("90-check-twice") + 1
    added = [{"cell_type": kind, "id": f"own{i}", "metadata": {}, "source": f"my {kind} {i}",
              **({"outputs": [], "execution_count": None} if kind == "code" else {})} for i, kind in enumerate(["code", "markdown"])]
    content["cells"][at:at] = added
    content["cells"][-1]["source"] = "check('90.Total', Total=Total)"
    demo = next(cell for cell in content["cells"] if "your_code():" in "".join(cell["source"]))
    demo["source"] = "print('my own try')"
    path.write_text(json.dumps(content))
    change_lab(own_course)
    open_lab(own_course, "90", work)
    found = sources(path)
    check = found.index('check("90.twice", twice=twice)')
    assert found[check + 1:check + 3] == ["my code 0", "my markdown 1"]
    assert found[found.index("with your_code():\n    print(twice([1, 2, 3]))") + 1] == "print('my own try')"
    assert len({cell["id"] for cell in cells(path)}) == len(found)


def test_an_answer_typed_into_a_cell_of_its_own_is_carried_into_the_answer_cell(own_course, work):
    path = open_lab(own_course, "90", work).path
    content = json.loads(path.read_text("utf-8"))
    content["cells"].append({"cell_type": "code", "id": "x", "metadata": {}, "source": TWICE, "outputs": [], "execution_count": None})
    path.write_text(json.dumps(content))
    change_lab(own_course)
    assert open_lab(own_course, "90", work).carried == ("twice",)
    assert sources(path).count(TWICE) == 1


def test_a_copy_that_cannot_be_read_is_kept_aside(course, work):
    work.mkdir()
    (work / f"{NAME}.ipynb").write_text("{ half a file")
    opened = open_lab(course, "90", work)
    assert opened.what == "replaced" and opened.backup.read_text() == "{ half a file"
    assert sources(opened.path)[1:] == sources(course.exercise("90"))[1:]


def test_a_reset_exercise_is_untouched_and_its_answer_kept(course, work):
    path = open_lab(course, "90", work).path
    total = "class Total:\n    pass"
    answered(course.exercise("90"), path, twice=TWICE, Total=total)
    found, kept = reset(course, "90.twice", work)
    assert found == path and kept.read_text() == TWICE + "\n"
    assert TWICE not in sources(path) and total in sources(path)
    answered(course.exercise("90"), path, twice=TWICE + "  # again")
    _, second = reset(course, "90.twice", work)
    assert kept.read_text() == TWICE + "\n" and second != kept


def test_a_reset_that_has_nothing_to_do_says_so(course, work):
    with pytest.raises(CourseError, match="llmcourse open 90"):
        reset(course, "90.twice", work)
    open_lab(course, "90", work)
    with pytest.raises(CourseError, match="untouched"):
        reset(course, "90.twice", work)
    with pytest.raises(UnknownLesson, match="it has: twice, Total"):
        reset(course, "90.thrice", work)


def test_the_first_line_says_whether_this_is_the_learners_copy(own_course, work):
    path = open_lab(own_course, "90", work).path
    assert sources(own_course.exercise("90"))[0].startswith("*This is the untouched lab, not your copy")
    assert sources(own_course.solution("90"))[0].startswith("*This is the solution")
    assert sources(path)[0].startswith("*This is your own copy: write here.")
    change_lab(own_course)
    open_lab(own_course, "90", work)
    assert [line[:22] for line in sources(path) if line.startswith("*This is")] == ["*This is your own copy"]
