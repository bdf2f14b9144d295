"""The hostile and unlucky submissions: small sources in hostile_sources/, made into the notebooks in hostile/.

    python tests/grade/hostile_pack.py     writes the notebooks anew

A source's first line is a comment with JSON: `full`, the exercises that get full marks ("all", "none", or "others": all
but the one that the case is about, merge_pair); `status` and `reason` of its row; `file`, `metadata`, `raw` where the
notebook is odd. A cell marked correct="all" stands for the correct answers, one marked wrong="all" for answers that all
return `value`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SOURCES, NOTEBOOKS = HERE / "hostile_sources", HERE / "hostile"
SUBJECT = "merge_pair"
_CELL = re.compile(r"^# %%(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """One submission and what its row must say. attack: what a success would be ("" for the merely unlucky)."""

    name: str
    full: str
    status: str
    reason: str
    warning: str
    attack: str
    content: bytes

    def full_marks(self, exercises: list[str]) -> set[str]:
        """The exercises that this submission gets right."""
        right = {"all": exercises, "none": (), "others": [one for one in exercises if one != SUBJECT]}
        return set(right[self.full])


def cases() -> list[Case]:
    """All of them, by name."""
    return [_case(file) for file in sorted(SOURCES.glob("[a-z]*.py"))]


def write(folder: Path) -> None:
    """Write the notebooks."""
    folder.mkdir(exist_ok=True)
    for case in cases():
        (folder / f"{case.name}.ipynb").write_bytes(case.content)


def _case(file: Path) -> Case:
    head, _, body = file.read_text("utf-8").partition("\n")
    about = json.loads(head.lstrip("# "))
    content = (
        about["raw"].encode("utf-8", "surrogatepass") if "raw" in about else _notebook(body, about.get("metadata", {}))
    )
    return Case(
        about.get("file", file.stem),
        about["full"],
        about["status"],
        about.get("reason", ""),
        about.get("warning", ""),
        about.get("attack", ""),
        content,
    )


def _notebook(body: str, metadata: dict) -> bytes:
    cells = [cell for mark, source in _split(body) for cell in _cells(mark, source.strip("\n"))]
    whole = {
        "cells": cells,
        "metadata": {"llmcourse": {"lesson": "01"}, **metadata},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode()


def _split(body: str) -> list[tuple[str, str]]:
    """The cells: what stands on the line of each mark, and the lines after it."""
    parts = _CELL.split(body)
    return list(zip(parts[1::2], parts[2::2]))


def _cells(mark: str, source: str) -> list[dict]:
    said = dict(re.findall(r'(\w+)="((?:[^"])*)"', mark))
    if "correct" in said:
        return [
            _cell(answer, {"role": "answer", "exercise": name})
            for name, answer in _answers().items()
            if said["correct"] == "all" or name != SUBJECT
        ]
    if "wrong" in said:
        return [
            _cell(_wrong(answer, name, said.get("value", "'wrong'")), {"role": "answer", "exercise": name})
            for name, answer in _answers().items()
        ]
    kind = (re.search(r"\[(\w+)\]", mark) or ["", "code"])[1]
    llmcourse = {}
    if "check" in said:
        llmcourse = {"role": "check", "exercise": said["check"]}
    if "ex" in said:
        llmcourse = {"role": "answer", "exercise": said["ex"]}
    return [_cell(source, llmcourse, kind)]


def _cell(source: str, llmcourse: dict, kind: str = "code") -> dict:
    cell = {
        "cell_type": kind,
        "metadata": {"llmcourse": llmcourse} if llmcourse else {},
        "source": source.splitlines(keepends=True),
    }
    return {**cell, "execution_count": None, "outputs": []} if kind == "code" else cell


def _answers() -> dict[str, str]:
    """A correct answer to each exercise of lab 01, in order."""
    return {
        re.findall(r"^(?:def|class) (\w+)", source, re.MULTILINE)[-1]: source.strip("\n")
        for _, source in _split((SOURCES / "_correct.py").read_text("utf-8"))
    }


def _wrong(answer: str, name: str, value: str) -> str:
    """An answer of the same name that gives `value`, which may use name, arguments and named."""
    if not answer.startswith("class") and "\nclass" not in answer:
        return f"def {name}(*arguments, **named):\n    name = {name!r}\n    return {value}"
    return (
        f"class {name}:\n    def __init__(self, *arguments, **named):\n        self.arguments = arguments, named\n\n"
        "    def __getattr__(self, method):\n        def wrong(*arguments, **named):\n"
        f"            name = {name!r}\n            return {value}\n\n        return wrong"
    )


if __name__ == "__main__":
    write(NOTEBOOKS)
