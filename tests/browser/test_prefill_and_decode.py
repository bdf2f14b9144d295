"""Lesson 06 in a live JupyterLab: a slider moved moves the step under the roof."""

from __future__ import annotations

from tests.browser.page import NotebookPage, never_run


def test_more_requests_move_the_step_along_the_roof(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, never_run(jupyterlab[1], "06_prefill_and_decode"))
    page.run("from statistics import median")
    page.run("roof = ceilings(")
    page.run("MACHINES = {")
    before = page.picture_of("MACHINES = {")
    words = page.move_slider("MACHINES = {", "requests", 2)
    assert "requests = 4" in words and page.picture_of("MACHINES = {") != before
    page.picture("roofline")
    assert page.errors() == []
