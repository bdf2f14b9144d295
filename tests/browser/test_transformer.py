"""Lesson 04 in a live JupyterLab: the map of a model follows its slider."""

from __future__ import annotations

from tests.browser.page import NotebookPage, never_run


def test_a_longer_text_moves_the_work_from_feed_forward_to_looking_back(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, never_run(jupyterlab[1], "04_transformer"))
    page.run("from dataclasses import replace")
    page.run("def anatomy(")
    before, words = page.picture_of("def anatomy("), page.words_of("def anatomy(")
    moved = page.move_slider("def anatomy(", "tokens before", 2)
    page.picture("model-map")
    assert "after 1,024 others" in words and "after 4,096 others" in moved
    assert page.picture_of("def anatomy(") != before
    assert page.errors() == []
