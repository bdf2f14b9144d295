"""Lesson 08 in a live JupyterLab: the window's sliders change who sees whom."""

from __future__ import annotations

from tests.browser.page import NotebookPage, never_run


def test_a_longer_window_forgets_fewer_tokens(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, never_run(jupyterlab[1], "08_smaller_cache"))
    page.run("from dataclasses import replace")
    page.run("explore(plots.window_mask")
    before = page.picture_of("explore(plots.window_mask")
    assert "the newest 6; 13 are forgotten" in page.words_of("explore(plots.window_mask")
    assert "the newest 8; 11 are forgotten" in page.move_slider("explore(plots.window_mask", "window", 2)
    assert "the first 0 and the newest 8; 12 are" in page.move_slider("explore(plots.window_mask", "sinks", -1)
    page.picture("window-mask")
    assert page.picture_of("explore(plots.window_mask") != before
    assert page.errors() == []
