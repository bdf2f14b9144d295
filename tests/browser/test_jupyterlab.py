"""The course as a learner meets it: JupyterLab in a browser."""

from __future__ import annotations

import pytest

from tests.browser.page import NotebookPage


def test_a_learner_types_an_answer_runs_the_check_and_reads_what_is_wrong(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, "exercises/01_tokenizer.ipynb")
    the_check = 'check("01.merge_pair"'
    page.run("from llmcourse.workbook import")
    page.run("def merge_pair")
    page.run(the_check)
    assert "not written yet" in page.wait_for_output(the_check, "merge_pair")

    page.type_into("def merge_pair", "def merge_pair(ids, pair, new_id): return list(ids)")
    page.run("def merge_pair")
    page.run(the_check)
    said = page.wait_for_output(the_check, "of 4 points")
    page.picture("wrong-answer")
    assert "wrong values" in said and "✗" in said and "Hint:" in said
    assert "Traceback" not in said


def test_lesson_00_runs_from_top_to_bottom(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, "notebooks/00_one_prompt.ipynb")
    page.run_all()
    page.picture("lesson-00")
    assert page.errors() == []
    assert "Paris" in page.text()


@pytest.mark.parametrize("lesson", ["00_one_prompt", "01_tokenizer"])
def test_a_lesson_shows_its_pictures_before_any_cell_is_run(jupyterlab, browser, lesson):
    page = NotebookPage(browser, *jupyterlab, f"notebooks/{lesson}.ipynb", kernel=False)
    pictures = page.pictures()
    assert len(pictures) >= 3 and all(width > 200 for width in pictures)
