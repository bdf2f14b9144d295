"""Lesson 06 in a live JupyterLab: another machine changes the map of what a step waits for."""

from __future__ import annotations

from tests.browser.page import NotebookPage, never_run


def test_another_machine_is_another_map(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, never_run(jupyterlab[1], "06_prefill_and_decode"))
    page.run("from statistics import median")
    page.run("roof = ceilings(")
    page.run("MACHINES = {")
    before = page.picture_of("MACHINES = {")
    words = page.choose("MACHINES = {", "machine", "a laptop's CPU")
    assert "a laptop's CPU" in words and page.picture_of("MACHINES = {") != before
    page.picture("bounds")
    assert page.errors() == []
