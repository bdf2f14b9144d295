"""Lesson 05's sliders in a live JupyterLab."""

from __future__ import annotations

from tests.browser.page import NotebookPage, never_run

KNOBS = "def knobs"


def test_a_slider_of_the_sampler_changes_which_tokens_are_left(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, never_run(jupyterlab[1], "05_sampling"))
    page.run("engine = Engine()")
    page.run("OPEN, CLEAR =")
    page.run(KNOBS)
    page._wait(lambda _: page.words_of(KNOBS))
    before, words = page.picture_of(KNOBS), page.words_of(KNOBS)
    hotter = page.move_slider(KNOBS, "temperature", 3)
    assert page.picture_of(KNOBS) != before and "28 of 49,152 tokens are left" in words
    assert "28 of 49,152" not in hotter
    assert "3 of 49,152 tokens are left" in page.move_slider(KNOBS, "top k", 3)
    page.picture("sampling-knobs")
    assert page.errors() == []
