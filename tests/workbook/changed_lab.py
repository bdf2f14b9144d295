"""A solution of the course with something in it changed: what a learner's own notebook would be."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def changed(folder: Path, lab: str, replacements: dict[str, str]) -> Path:
    """Write the solution of `lab` ("03_attention") with pieces of its source replaced, alone in a folder; returns the folder.

    Every piece must stand in it exactly once.
    """
    notebook = (ROOT / "solutions" / f"{lab}.ipynb").read_text(encoding="utf-8")
    for old, new in replacements.items():
        old, new = json.dumps(old)[1:-1], json.dumps(new)[1:-1]
        assert notebook.count(old) == 1, f"{old!r} stands {notebook.count(old)} times in the solution of {lab}"
        notebook = notebook.replace(old, new)
    (folder / f"{lab}.ipynb").write_text(notebook, encoding="utf-8")
    return folder
