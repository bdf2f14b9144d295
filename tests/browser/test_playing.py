"""The lessons' boxes and sliders in a live JupyterLab: what is typed or moved changes what is shown."""

from __future__ import annotations

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.page import NotebookPage, never_run


def box_of(page: NotebookPage, beginning: str):
    """The text box below a cell."""
    page._wait(lambda _: page._cell(beginning).find_elements(By.CSS_SELECTOR, "input[type=text]"))
    return page._cell(beginning).find_element(By.CSS_SELECTOR, "input[type=text]")


def type_anew(box, text: str) -> None:
    """Replace what stands in a text box, key by key."""
    box.click()
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(text)


def test_tokens_follow_what_is_typed_and_merges_the_words(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, never_run(jupyterlab[1], "01_tokenizer"))
    page.run("import inspect")
    page.run("type_here(")
    type_anew(box_of(page, "type_here("), "pneumonia 7")
    assert "11 characters" in page.wait_for_output("type_here(", "11 characters")
    page.picture("typed-tokens")

    page.run("def merge_by_merge")
    before = page.picture_of("def merge_by_merge")
    type_anew(box_of(page, "def merge_by_merge"), "aa aaa")
    page._wait(lambda _: page.picture_of("def merge_by_merge") != before)
    page.picture("merges")

    before = page.picture_of("def merge_by_merge")
    assert "merges = 1)" in page.move_slider("def merge_by_merge", "merges", -3)
    assert page.picture_of("def merge_by_merge") != before
    assert page.errors() == []


def test_a_typed_prompt_is_answered_with_its_times(jupyterlab, browser):
    page = NotebookPage(browser, *jupyterlab, never_run(jupyterlab[1], "00_one_prompt"))
    page.run("engine = Engine()")
    page.run("watch_tokens(engine")
    assert "Paris" in page.wait_for_output("watch_tokens(engine", "tokens per second")
    before = page.wait_for_output("watch_tokens(engine", "prompt ")
    type_anew(box_of(page, "watch_tokens(engine"), "Hi")
    page._cell("watch_tokens(engine").find_element(By.TAG_NAME, "button").click()
    page._wait(lambda _: before.splitlines()[0] not in page._output("watch_tokens(engine"))
    assert "Paris" not in page.wait_for_output("watch_tokens(engine", "tokens per second")
    page.picture("asked")
    assert page.errors() == []
