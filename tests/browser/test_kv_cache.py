"""Lesson 07 in a live JupyterLab: a slider moved shows another cache beside the weights."""

from __future__ import annotations

from tests.browser.page import NotebookPage, never_run


def test_a_longer_context_and_a_larger_batch_change_the_picture_of_the_memory(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, never_run(jupyterlab[1], "07_kv_cache"))
    page.run("from llmcourse.measure.known_models import")
    page.run("explore(memory")
    before = page.picture_of("explore(memory")
    assert "context = 8192" in page.move_slider("explore(memory", "context", 1)
    longer = page.picture_of("explore(memory")
    assert "batch = 2" in page.move_slider("explore(memory", "batch", 1)
    page.picture("kv-memory")
    assert len({before, longer, page.picture_of("explore(memory")}) == 3
    assert page.errors() == []
