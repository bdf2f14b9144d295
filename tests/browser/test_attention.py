"""Lesson 03 in a live JupyterLab: a slider of the explorer moved shows the map of another head."""

from __future__ import annotations

from tests.browser.page import NotebookPage, never_run


def test_a_slider_moved_shows_another_heads_map(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, never_run(jupyterlab[1], "03_attention"))
    page.run("from llmcourse.workbook.attention_maps import")
    page.run("explore(look")
    before = page.picture_of("explore(look")
    assert "layer = 20" in page.move_slider("explore(look", "layer", 3)
    page.picture("attention-explorer")
    assert page.picture_of("explore(look") != before
    assert page.errors() == []
