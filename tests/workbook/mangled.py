"""Copies of the fake lab, mangled in one way, and what is loaded from them."""

from __future__ import annotations

import json

from llmcourse.workbook.answers import load_answers
from tests.fake_course import answered

EXERCISES = ("twice", "Total")
TWICE = "def twice(numbers):\n    return [n + n for n in numbers]"


def mangled(lab, tmp_path, change, **answers):
    """A copy of the lab after `change(cells, notebook)`."""
    target = answered(lab, tmp_path / "mine.ipynb", **answers)
    notebook = json.loads(target.read_text())
    change(notebook["cells"], notebook)
    target.write_text(json.dumps(notebook))
    return target


def code(source: str, **metadata) -> dict:
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": [], "execution_count": None}


def load(path, lab):
    return load_answers(path, lab, EXERCISES)


def position(cells, cell_id: str) -> int:
    return next(i for i, cell in enumerate(cells) if cell.get("id") == cell_id)
