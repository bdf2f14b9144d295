"""A notebook open in JupyterLab, with the few things that a learner does to it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from selenium.common import exceptions
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

SECONDS = 150  # a cold kernel that loads torch and the model, on a busy machine
STILL_DRAWING = (
    exceptions.NoSuchElementException, exceptions.StaleElementReferenceException,
    exceptions.ElementNotInteractableException, exceptions.ElementClickInterceptedException, StopIteration,
)  # fmt: skip
PATIENCE, KEY_PRESSES = 20, 5
RUNNING = "[*]:"
CELL, EDITOR, OUTPUT = ".jp-CodeCell", ".cm-content", ".jp-OutputArea-output"
SLIDER, LABEL, HANDLE = ".widget-slider", ".widget-label", ".noUi-handle"


def never_run(folder: Path, name: str) -> str:
    """The lesson as a new file without outputs and execution counts; its path below the folder."""
    notebook = json.loads((folder / "notebooks" / f"{name}.ipynb").read_text("utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    (folder / "notebooks" / f"{name}_never_run.ipynb").write_text(json.dumps(notebook), "utf-8")
    return f"notebooks/{name}_never_run.ipynb"


class NotebookPage:
    """Opens `path` (below the server's folder) and waits until it is drawn, and its kernel idle unless kernel=False."""

    def __init__(self, browser, address: str, folder: Path, path: str, kernel: bool = True):
        self.browser = browser
        browser.get(f"{address}/doc/tree/{path}?token=letmein&reset")
        self._wait(lambda _: len(self._cells()) > 2)
        if kernel:
            self._wait(lambda _: self._find_all(".jp-Notebook-ExecutionIndicator[data-status='idle']"))

    def run(self, beginning: str) -> None:
        """Click into the cell that holds this text, press Shift-Enter, and wait until it has run.

        On a busy machine a key press can be lost while the page is still being drawn: a person presses again, and so do we.
        """
        before = self._prompt(beginning)
        for _ in range(KEY_PRESSES):
            self._click(self._cell(beginning))
            self._keys(Keys.SHIFT, Keys.ENTER)
            if self._becomes(lambda _: self._prompt(beginning) != before, PATIENCE):
                break
        self._wait(lambda _: self._prompt(beginning) not in (before, RUNNING))

    def type_into(self, beginning: str, text: str) -> None:
        """Replace the source of a cell as a person would: click, select all, type."""
        self._click(self._cell(beginning))
        self._keys(Keys.CONTROL, "a")
        self.browser.switch_to.active_element.send_keys(text)

    def wait_for_output(self, beginning: str, text: str) -> str:
        """The output of a cell, once it holds `text`."""
        self._wait(lambda _: text in self._output(beginning))
        return self._output(beginning)

    def move_slider(self, beginning: str, label: str, steps: int = 1) -> str:
        """Move the slider of this label below a cell by so many steps, with the arrow keys (to the left where steps < 0).

        Waits for the new picture after each step, and returns what the last one shows in words. The words hold the
        settings, so they are new even where the picture looks the same.
        """
        key = Keys.ARROW_RIGHT if steps > 0 else Keys.ARROW_LEFT
        self._wait(lambda _: self._slider(beginning, label) and self.words_of(beginning))
        for _ in range(abs(steps)):
            before, handle = self.words_of(beginning), self._slider(beginning, label)
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", handle)
            handle.send_keys(key)
            self._wait(lambda _: self.words_of(beginning) != before)
        return self.words_of(beginning)

    def choose(self, beginning: str, label: str, option: str) -> str:
        """Choose from the list of this label below a cell; waits for the new picture and returns it in words."""
        self._wait(lambda _: self._list(beginning, label) and self.words_of(beginning))
        before = self.words_of(beginning)
        Select(self._list(beginning, label)).select_by_visible_text(option)
        self._wait(lambda _: self.words_of(beginning) != before)
        return self.words_of(beginning)

    def picture_of(self, beginning: str) -> str:
        """The first picture below a cell, as its data address."""
        return self._cell(beginning).find_element(By.CSS_SELECTOR, f"{OUTPUT} img").get_attribute("src")

    def words_of(self, beginning: str) -> str:
        """What the first picture below a cell shows in words (they are folded)."""
        return self._cell(beginning).find_element(By.CSS_SELECTOR, f"{OUTPUT} details").get_attribute("textContent")

    def run_all(self) -> None:
        """Run every cell, from the menu, and wait for the last one."""
        for word in ("Run", "Run All Cells"):
            self._wait(lambda _: self._items(word))
            self._items(word)[0].click()
        self._wait(lambda _: not any(RUNNING in cell.text for cell in self._cells()), seconds=2 * SECONDS)
        self._wait(lambda _: self._find_all(".jp-Notebook-ExecutionIndicator[data-status='idle']"), seconds=2 * SECONDS)

    def errors(self) -> list[str]:
        """The text of every error output."""
        return [one.text for one in self._find_all(".jp-RenderedText[data-mime-type='application/vnd.jupyter.error']")]

    def pictures(self) -> list[int]:
        """The widths of all pictures in outputs, in pixels."""
        return [one.size["width"] for one in self._find_all(f"{OUTPUT} img")]

    def text(self) -> str:
        """All that can be read."""
        return self.browser.find_element(By.CSS_SELECTOR, ".jp-Notebook").text

    def picture(self, name: str) -> None:
        """Save a screenshot where LLMCOURSE_SCREENSHOTS names a folder; the tests themselves read text."""
        if os.environ.get("LLMCOURSE_SCREENSHOTS"):
            self.browser.save_screenshot(str(Path(os.environ["LLMCOURSE_SCREENSHOTS"]) / f"{name}.png"))

    def _wait(self, condition, seconds: float = SECONDS) -> None:
        if not self._becomes(condition, seconds):
            self.picture("timeout")
            raise AssertionError(f"not within {seconds} s; the page reads: {self.text()[:3000]}")

    def _becomes(self, condition, seconds: float) -> bool:
        try:
            return bool(WebDriverWait(self.browser, seconds, ignored_exceptions=STILL_DRAWING).until(condition))
        except exceptions.TimeoutException:
            return False

    def _find_all(self, selector: str) -> list:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def _cells(self) -> list:
        return self._find_all(CELL)

    def _items(self, word: str) -> list:
        labels = self._find_all(".lm-MenuBar-itemLabel, .lm-Menu-itemLabel")
        return [one for one in labels if one.text.strip() == word]

    def _cell(self, beginning: str):
        return next(cell for cell in self._cells() if beginning in cell.find_element(By.CSS_SELECTOR, EDITOR).text)

    def _output(self, beginning: str) -> str:
        return "\n".join(one.text for one in self._cell(beginning).find_elements(By.CSS_SELECTOR, OUTPUT))

    def _slider(self, beginning: str, label: str):
        """The part of a slider that takes key presses."""
        sliders = self._cell(beginning).find_elements(By.CSS_SELECTOR, SLIDER)
        return next(one.find_element(By.CSS_SELECTOR, HANDLE) for one in sliders
                    if one.find_element(By.CSS_SELECTOR, LABEL).text == label)

    def _prompt(self, beginning: str) -> str:
        return self._cell(beginning).find_element(By.CSS_SELECTOR, ".jp-InputPrompt").text

    def _click(self, cell) -> None:
        """Into its editor, as soon as nothing that is still being drawn lies over it."""

        def clicked(_) -> bool:
            editor = cell.find_element(By.CSS_SELECTOR, EDITOR)
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", editor)
            editor.click()
            return True

        self._wait(clicked)

    def _keys(self, *keys: str) -> None:
        ActionChains(self.browser).key_down(keys[0]).send_keys(keys[1]).key_up(keys[0]).perform()

    def _list(self, beginning: str, label: str):
        boxes = self._cell(beginning).find_elements(By.CSS_SELECTOR, ".widget-dropdown")
        return next((box.find_element(By.CSS_SELECTOR, "select") for box in boxes if label in box.text), None)
