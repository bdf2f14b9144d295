"""What of a submission runs. Each notebook is the fake lab, mangled in one way."""

from __future__ import annotations

import json

import pytest

from llmcourse.errors import UnreadableNotebook
from llmcourse.workbook.answers import Snippet, choose, execute, load_answers
from llmcourse.workbook.notebook import defined_names, parse, read_notebook
from tests.fake_course import NAME, answered
from tests.workbook.mangled import EXERCISES, TWICE, code, load, mangled, position


@pytest.fixture
def lab(built):
    return built.root / "exercises" / f"{NAME}.ipynb"


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
