"""The course as a learner meets it: JupyterLab in a browser."""

from __future__ import annotations

import pytest

from tests.browser.page import NotebookPage


def test_a_learner_types_an_answer_runs_the_check_and_reads_what_is_wrong(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, "exercises/00_one_prompt.ipynb")
    page.run("from llmcourse import Engine")
    page.run("def generate_loop")
    page.run('check("00.generate_loop"')
    assert "not written yet" in page.wait_for_output('check("00.generate_loop"', "generate_loop")

    page.type_into("def generate_loop", "def generate_loop(next_logits, ids, max_new, stop_ids): return list(ids)")
    page.run("def generate_loop")
    page.run('check("00.generate_loop"')
    said = page.wait_for_output('check("00.generate_loop"', "of")
    page.picture("wrong-answer")
    assert "wrong values" in said and "✗" in said and "Hint:" in said
    assert "Traceback" not in said


def test_lesson_00_runs_from_top_to_bottom(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, "notebooks/00_one_prompt.ipynb")
    page.run_all()
    page.picture("lesson-00")
    assert page.errors() == []
    assert "Paris" in page.text()


@pytest.mark.parametrize("lesson", ["00_one_prompt"])
def test_a_lesson_shows_its_pictures_before_any_cell_is_run(jupyterlab, browser, lesson):
    page = NotebookPage(browser, *jupyterlab, f"notebooks/{lesson}.ipynb", kernel=False)
    pictures = page.pictures()
    assert len(pictures) >= 3 and all(width > 200 for width in pictures)
