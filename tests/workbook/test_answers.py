"""What of a submission runs. Each notebook is the fake lab, mangled in one way."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from llmcourse.errors import UnreadableNotebook
from llmcourse.workbook.answers import Snippet, choose, execute, load_answers
from llmcourse.workbook.notebook import defined_names, parse, read_notebook
from tests.fake_course import NAME, answered

EXERCISES = ("twice", "Total")
TWICE = "def twice(numbers):\n    return [n + n for n in numbers]"


@pytest.fixture
def lab(built):
    return built.root / "exercises" / f"{NAME}.ipynb"


def mangled(lab, tmp_path, change, **answers):
    """A copy of the lab after `change(cells, notebook)`."""
    target = answered(lab, tmp_path / "mine.ipynb", **answers)
    notebook = json.loads(target.read_text())
    change(notebook["cells"], notebook)
    target.write_text(json.dumps(notebook))
    return target


def code(source: str, **metadata) -> dict:
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": [], "execution_count": None}


def load(path, lab):
    return load_answers(path, lab, EXERCISES)


def position(cells, cell_id: str) -> int:
    return next(i for i, cell in enumerate(cells) if cell.get("id") == cell_id)


def test_answers_run_and_checks_and_demonstrations_do_not(lab, tmp_path):
    notebook = read_notebook(answered(lab, tmp_path / "mine.ipynb", twice=TWICE))
    pieces, warnings = choose(notebook, read_notebook(lab), EXERCISES)
    assert not warnings
    assert not [p for p in pieces if "check(" in p.source or "your_code():" in p.source]
    assert execute(pieces).objects["twice"]([3]) == [6]


def test_a_cell_that_the_learner_added_runs(lab, tmp_path):
    helper = code("def double(n):\n    return n + n")
    path = mangled(lab, tmp_path, lambda cells, nb: cells.insert(2, helper), twice="def twice(ns):\n    return [double(n) for n in ns]")
    assert load(path, lab).objects["twice"]([3]) == [6]


def test_a_deleted_import_cell_is_replaced_by_the_labs_own(lab, tmp_path):
    path = mangled(lab, tmp_path, lambda cells, nb: cells.pop(1))
    assert "your_code" in load(path, lab).objects


def test_a_retyped_answer_is_found_by_its_name(lab, tmp_path):
    def retype(cells, notebook):
        at = position(cells, "90-answer-twice")
        cells[at] = code(TWICE)

    answers = load(mangled(lab, tmp_path, retype), lab)
    assert answers.objects["twice"]([3]) == [6] and answers.sources["twice"] == TWICE


def test_without_any_marks_checks_and_demonstrations_are_known_by_their_text(lab, tmp_path):
    def strip(cells, notebook):
        notebook["metadata"] = {}
        for cell in cells:
            cell["metadata"] = {}
            cell.pop("id")

    path = mangled(lab, tmp_path, strip, twice="def twice(ns):\n    raise SystemExit")
    answers = load(path, lab)
    assert not answers.problems and callable(answers.objects["twice"])


def test_of_two_answers_the_last_counts_and_a_warning_says_so(lab, tmp_path):
    again = code("def twice(ns):\n    return 'second'")
    answers = load(mangled(lab, tmp_path, lambda cells, nb: cells.append(again), twice=TWICE), lab)
    assert answers.objects["twice"]([1]) == "second"
    assert answers.warnings == ["twice is answered in cell 5 and again in cell 12: the last counts"]


def test_an_edited_check_cell_gives_its_definitions_and_nothing_else(lab, tmp_path):
    def tamper(cells, notebook):
        cells[position(cells, "90-check-twice")]["source"] = "def helper(): return 1\nraise SystemExit\ncheck('90.twice', twice=twice)"

    answers = load(mangled(lab, tmp_path, tamper), lab)
    assert not answers.problems and answers.objects["helper"]() == 1


@pytest.mark.parametrize("source, error, line", [
    ("x = 1\nimport no_such_module", "ModuleNotFoundError", 2),
    ("def twice(:\n", "SyntaxError", 1),
    ("x = 1\n\nraise SystemExit(3)", "SystemExit", 3),
    ("exit()", "SystemExit", 1),
])
def test_a_failing_cell_is_a_problem_with_its_line_and_the_rest_runs(lab, tmp_path, source, error, line):
    path = mangled(lab, tmp_path, lambda cells, nb: cells.insert(2, code(source)), twice=TWICE)
    answers = load(path, lab)
    problem, = answers.problems
    assert (problem.cell, problem.error, problem.line) == (3, error, line)
    assert answers.objects["twice"]([3]) == [6]


def test_a_cell_that_never_ends_is_a_problem(lab, tmp_path):
    path = mangled(lab, tmp_path, lambda cells, nb: cells.insert(2, code("while True: pass")), twice=TWICE)
    pieces, _ = choose(read_notebook(path), read_notebook(lab), EXERCISES)
    answers = execute(pieces, seconds=0.2)
    assert [p.error for p in answers.problems] == ["timeout"] and "twice" in answers.objects


def test_lines_for_ipython_are_passed_over_and_line_numbers_stay():
    tree = parse("%matplotlib inline\n!ls\nx = 1\n")
    assert tree.body[-1].lineno == 3
    assert defined_names(parse("%%timeit\nx = 1")) == []


def test_code_nested_too_deeply_is_a_syntax_error():
    with pytest.raises(SyntaxError):
        parse("(" * 5000 + ")" * 5000)


@pytest.mark.parametrize("content, said", [
    ("", "not a notebook"), ("[]", "not a notebook"), ("not json", "not a notebook"), ("{}", "no list of cells"),
    ('{"cells": 3}', "no list of cells"), ("[" * 100_000, "not a notebook"),
])
def test_what_is_no_notebook_is_said_to_be_none(tmp_path, content, said):
    file = tmp_path / "x.ipynb"
    file.write_text(content)
    with pytest.raises(UnreadableNotebook, match=said):
        read_notebook(file)


def test_a_file_that_is_missing_or_not_utf8_is_unreadable(tmp_path):
    with pytest.raises(UnreadableNotebook):
        read_notebook(tmp_path / "none.ipynb")
    (tmp_path / "x.ipynb").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableNotebook):
        read_notebook(tmp_path / "x.ipynb")


def test_odd_cells_are_passed_over_and_format_three_is_read(tmp_path):
    file = tmp_path / "01_tokenizer (1).ipynb"
    cells = [3, {}, {"cell_type": "code", "input": ["a = 1\n", "b = 2"], "metadata": None}, {"cell_type": "code", "source": 7}]
    file.write_text(json.dumps({"worksheets": [{"cells": cells}, {"cells": 3}, 4], "metadata": []}))
    notebook = read_notebook(file)
    assert [cell.source for cell in notebook.cells] == ["a = 1\nb = 2", ""]
    assert notebook.lesson == "01"


def test_calls_of_the_course_in_a_learners_own_cells_are_left_out(lab, tmp_path):
    source = TWICE + "\ncheck('90.twice', twice=1 / 0)\nhint(1 / 0)\nworkbook.predict(1 / 0)"
    answers = load(mangled(lab, tmp_path, lambda cells, nb: cells.append(code(source))), lab)
    assert not answers.problems and answers.objects["twice"]([3]) == [6]


def test_two_notebooks_of_one_name_quote_each_their_own_lines():
    import linecache

    pieces = [[Snippet("cell 4", f"def f():\n    return {n}\n", 4)] for n in (1, 2, 1)]
    files = [execute(one, file="01_tokenizer.ipynb").objects["f"].__code__.co_filename for one in pieces]
    assert [linecache.getline(file, 2).strip() for file in files] == ["return 1", "return 2", "return 1"]
    assert files[0] == files[2] != files[1]


def test_imports_do_not_count_against_the_limit_of_a_cell(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(0.3)\nx = 5\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    source = "from slow_to_import import x\ndef f(): return x"
    answers = execute([Snippet("cell 1", source, 1)], seconds=0.2)
    assert answers.problems == [] and answers.objects["f"]() == 5
    assert execute([Snippet("cell 2", "import time\ntime.sleep(5)", 2)], seconds=0.2).problems[0].error == "timeout"


def test_the_courses_own_solutions_have_no_limit(monkeypatch, course):
    from llmcourse.workbook import answers

    monkeypatch.setattr(answers, "time_limit", lambda seconds: 1 / 0)
    solution = course.solution("90")
    assert load_answers(solution, solution, ["twice"], "apart").problems == []
    assert load_answers(solution, solution, ["twice"]).problems[0].error == "ZeroDivisionError"


# ---- what a kernel accepts. Oracle: each of these cells runs in Jupyter and gives an answer that doubles ----

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
