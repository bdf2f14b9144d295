"""`explore` outside a plain run: a moved control in a live kernel, strict nbval, and HTML export."""

from __future__ import annotations

import base64
import os
import subprocess
import sys

import pytest

from llmcourse.workbook import author
from llmcourse.workbook.course import PACKAGE
from llmcourse.workbook.running import run_notebook

SOURCE = """from matplotlib.figure import Figure
from llmcourse.workbook import explore
def draw(power):
    figure = Figure()
    axes = figure.subplots()
    axes.set(title="Powers", xlabel="x", ylabel="y")
    axes.plot([x ** power for x in range(5)])
    return figure
explore(draw, power=(1, 4))
"""
WORDS = "Picture: Powers; y against x (power = {})"


@pytest.fixture
def stored(tmp_path):
    """A notebook with that cell, executed and written as the builder does it."""
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": SOURCE, "outputs": [], "execution_count": None}
    notebook = {"cells": [cell], "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
                "nbformat": 4, "nbformat_minor": 5}
    file = tmp_path / "explored.ipynb"
    author.write_notebook(file, run_notebook(notebook, file, PACKAGE.parent))
    return file


def with_package() -> dict:
    return {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}


def test_moving_a_control_replaces_the_picture_in_its_place():
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", env=with_package(), extra_arguments=["--IPKernelApp.log_level=ERROR"])
    try:
        seen = {"display_data": [], "update_display_data": [], "comm_open": []}

        def keep(message):
            if message["msg_type"] in seen:
                seen[message["msg_type"]].append(message["content"])

        client.execute_interactive(SOURCE, output_hook=keep, timeout=60)
        slider = next(c["comm_id"] for c in seen["comm_open"] if c["data"]["state"].get("_model_name") == "IntSliderModel")
        move = {"comm_id": slider, "data": {"method": "update", "state": {"value": 3}, "buffer_paths": []}}
        client.shell_channel.send(client.session.msg("comm_msg", move))
        while len(seen["update_display_data"]) < 2:
            keep(client.get_iopub_msg(timeout=60))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    first, again = seen["display_data"][0], seen["update_display_data"][0]
    assert seen["update_display_data"][1]["data"]["text/plain"] == WORDS.format(3)
    assert again["transient"]["display_id"] == first["transient"]["display_id"]
    assert (first["data"]["text/plain"], again["data"]["text/plain"]) == (WORDS.format(1), WORDS.format(3))
    assert base64.b64decode(again["data"]["image/png"]) != base64.b64decode(first["data"]["image/png"])


def test_strict_nbval_accepts_the_stored_outputs(stored):
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q", "-p", "no:cacheprovider", str(stored)]
    done = subprocess.run(command, capture_output=True, text=True, env=with_package(), cwd=stored.parent)
    assert "1 passed" in done.stdout, done.stdout


def test_exported_html_shows_the_picture_and_says_it_in_words(stored):
    from nbconvert import HTMLExporter

    page, _ = HTMLExporter().from_filename(str(stored))
    assert "data:image/png;base64," in page and f"in words</summary>{WORDS.format(1)}</details>" in page
    assert "Run this cell to move: power." in page and "application/vnd.jupyter.widget-view" not in page
