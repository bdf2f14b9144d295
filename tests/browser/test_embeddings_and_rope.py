"""Lesson 02 in a live JupyterLab: a slider of the RoPE dial turns the hands."""

from __future__ import annotations

from tests.browser.page import NotebookPage, never_run


def test_the_position_moved_turns_the_hands_of_the_dial(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, never_run(jupyterlab[1], "02_embeddings_and_rope"))
    page.run("from dataclasses import replace")
    page.run("explore(plots.rope_dial")
    before = page.picture_of("explore(plots.rope_dial")
    assert "at position 23: pair 0 3.66" in page.move_slider("explore(plots.rope_dial", "position", 3)
    assert page.picture_of("explore(plots.rope_dial") != before
    page.picture("rope-dial")
    assert "theta = 51200" in page.move_slider("explore(plots.rope_dial", "theta", -1)
    assert page.errors() == []
