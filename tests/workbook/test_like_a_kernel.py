"""What a kernel accepts, `check` and the grader accept. Oracle: each of these cells runs in Jupyter and its answer doubles."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from llmcourse.workbook.answers import choose, execute
from llmcourse.workbook.notebook import read_notebook
from tests.fake_course import NAME
from tests.workbook.mangled import EXERCISES, TWICE, code, load, mangled, position


@pytest.fixture
def lab(built):
    return built.root / "exercises" / f"{NAME}.ipynb"


LIKE_A_KERNEL = {
    "%%time": "%%time\n" + TWICE,
    "%%capture": "%%capture out\n" + TWICE + "\nout.show()",
    "%%capture with options": "%%capture --no-stderr\n" + TWICE,
    "help": TWICE + "\ntwice?\n?twice\ntwice??",
    "a command's lines": "files = !ls\n" + TWICE + "\nlen(files)",
    "%timeit -o": TWICE + "\nr = %timeit -o -n 1 -r 1 twice([1])\nassert r.best >= 0",
    "%time of a statement": "%time two = 2\ndef twice(numbers):\n    return [two * n for n in numbers]",
    "a magic in a function": "def twice(numbers):\n    %timeit -n 1 -r 1 3\n    !true\n    return [n + n for n in numbers]",
    "% at the start of a line of an expression": "%matplotlib inline\ntwo = (17\n    % 5)\ndef twice(numbers):\n    return [two * n for n in numbers]",
    "% at the start of a line of a text": "%matplotlib inline\ntext = \'\'\'\n%a\n!b\'\'\'\nassert text == \'\\n%a\\n!b\'\n" + TWICE,
    "await": "import asyncio\nawait asyncio.sleep(0)\ntwo = await asyncio.sleep(0, 2)\ndef twice(numbers):\n    return [two * n for n in numbers]",
    "get_ipython and display": "get_ipython().run_line_magic(\'matplotlib\', \'inline\')\ndisplay(3)\n" + TWICE,
    "prompts": ">>> def twice(numbers):\n...     return [n + n for n in numbers]\n",
    "an indented cell": "    def twice(numbers):\n        return [n + n for n in numbers]",
    "pickled": "import pickle\nclass Own: pass\ndef twice(numbers):\n    assert type(pickle.loads(pickle.dumps(Own()))) is Own\n"
               "    return [n + n for n in numbers]",
    "type hints": "import typing\ndef twice(numbers: list[int]) -> list[int]:\n"
                  "    assert twice.__annotations__[\'numbers\'] == list[int] == typing.get_type_hints(twice)[\'numbers\']\n"
                  "    return [n + n for n in numbers]",
    "main": "import __main__\ndef twice(numbers):\n    assert __name__ == \'__main__\' and __main__.twice is twice\n    return [n + n for n in numbers]",
}


@pytest.mark.parametrize("source", LIKE_A_KERNEL.values(), ids=LIKE_A_KERNEL)
def test_what_a_kernel_accepts_is_accepted(lab, tmp_path, source):
    answers = load(mangled(lab, tmp_path, lambda cells, nb: None, twice=source), lab)
    with answers.as_main():
        assert not answers.problems and answers.objects["twice"]([3]) == [6]


def test_an_error_in_a_cell_with_magics_names_its_line(lab, tmp_path):
    source = "%%time\n# two lines\n# of comment\ndef twice(numbers):\n    return 1\n1 / 0"
    problem, = load(mangled(lab, tmp_path, lambda cells, nb: None, twice=source), lab).problems
    assert (problem.error, problem.line) == ("ZeroDivisionError", 6)


def test_a_future_import_holds_for_later_cells_and_this_packages_own_does_not(lab, tmp_path):
    future = code("from __future__ import annotations")
    path = mangled(lab, tmp_path, lambda cells, nb: cells.insert(2, future), twice="def twice(ns: no_such_name):\n    return [n + n for n in ns]")
    assert not load(path, lab).problems
    path = mangled(lab, tmp_path, lambda cells, nb: None, twice="def twice(ns: no_such_name):\n    return [n + n for n in ns]")
    assert [one.error for one in load(path, lab).problems] == ["NameError"]


def test_await_works_where_a_kernels_loop_is_running(lab, tmp_path):
    path = mangled(lab, tmp_path, lambda cells, nb: None, twice=LIKE_A_KERNEL["await"])

    async def kernel():
        return load(path, lab).objects["twice"]([3])

    assert asyncio.run(kernel()) == [6]


def test_what_only_a_kernel_does_is_said(lab, tmp_path):
    path = mangled(lab, tmp_path, lambda cells, nb: cells.insert(2, code("%%bash\nls")), twice="!ls\n%matplotlib inline\n" + TWICE)
    assert load(path, lab).warnings == ["%%bash in cell 3 is for a kernel and does nothing here",
                                        "!ls in cell 6 is for a kernel and does nothing here"]


def reworked(role: str, before: str, after: str):
    """A change of the lab's first cell of a role: something before its source, something behind."""

    def change(cells, notebook):
        cell = next(one for one in cells if one["metadata"].get("llmcourse", {}).get("role") == role)
        cell["source"] = before + "".join(cell["source"]) + after

    return change


@pytest.mark.parametrize("role", ["check", "own"])
def test_a_constant_added_to_a_cell_of_the_labs_own_is_there_and_nothing_else_of_it_runs(lab, tmp_path, role):
    change = reworked(role, "ONE = 1\n", "\nTWO = ONE + 1\nunneeded = 1 / 0\nraise SystemExit")
    answers = load(mangled(lab, tmp_path, change, twice="def twice(ns):\n    return [TWO * n for n in ns]"), lab)
    assert not answers.problems and answers.objects["twice"]([3]) == [6] and "unneeded" not in answers.objects


def test_a_name_that_only_a_demonstration_sets_is_warned_of(lab, tmp_path):
    change = reworked("own", "", "\n    HELPER = 2")
    answers = load(mangled(lab, tmp_path, change, twice="def twice(ns):\n    return [HELPER * n for n in ns]"), lab)
    warning, = answers.warnings
    assert warning.startswith("HELPER is set in cell") and "set it in a cell of your own" in warning


def test_a_copy_above_the_untouched_cell_counts(lab, tmp_path):
    path = mangled(lab, tmp_path, lambda cells, nb: cells.insert(2, code(TWICE)))
    answers = load(path, lab)
    assert answers.objects["twice"]([3]) == [6] and answers.sources["twice"] == TWICE and answers.warnings == []


def test_a_deleted_answer_is_said(lab, tmp_path):
    path = mangled(lab, tmp_path, lambda cells, nb: cells.pop(position(cells, "90-answer-twice")))
    assert load(path, lab).warnings == ["no cell answers twice: its cell was deleted, or defines another name"]


def test_an_untouched_lab_has_no_warnings(lab):
    assert load(lab, lab).warnings == []


@pytest.mark.parametrize("file, lesson", [("hw03_final.ipynb", "90"), ("03_attention.ipynb", "90"), ("lab.ipynb", "90")])
def test_a_notebook_without_marks_is_of_the_lesson_whose_exercises_it_answers(built, lab, tmp_path, file, lesson):
    path = mangled(lab, tmp_path, lambda cells, notebook: notebook.update(metadata={}), twice=TWICE).rename(tmp_path / file)
    assert built.lesson_of(read_notebook(path)) == lesson


def test_where_nothing_is_answered_the_files_name_says_the_lesson(built, tmp_path):
    (tmp_path / "03_attention (2).ipynb").write_text(json.dumps({"cells": [code("x = 1")]}))
    assert built.lesson_of(read_notebook(tmp_path / "03_attention (2).ipynb")) == "03"


def test_endless_cells_of_ones_own_take_the_time_of_one_and_leave_the_answers(lab, tmp_path):
    endless = [code("def helper(): return 2\nwhile True: pass") for _ in range(6)]
    path = mangled(lab, tmp_path, lambda cells, nb: cells.extend(endless), twice=TWICE)
    pieces, _ = choose(read_notebook(path), read_notebook(lab), EXERCISES)
    started = time.process_time()
    answers = execute(pieces, seconds=0.5)
    assert time.process_time() - started < 1.5  # six times 0.5 if each had its own time
    assert answers.objects["twice"]([3]) == [6] and answers.objects["helper"]() == 2
    assert [p.error for p in answers.problems] == ["timeout", "timeout"] and "only definitions run" in answers.problems[1].message


def test_many_slow_cells_of_ones_own_leave_the_answers_their_time(lab, tmp_path):
    slow = [code("import time\ntime.sleep(0.2)") for _ in range(8)]

    def change(cells, notebook):
        cells[2:2] = slow

    pieces, _ = choose(read_notebook(mangled(lab, tmp_path, change, twice=TWICE)), read_notebook(lab), EXERCISES)
    answers = execute(pieces, seconds=0.5)
    assert answers.objects["twice"]([3]) == [6] and len(answers.problems) == 2
