"""The modules of text/ import each other in one direction only, type hints included."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import llmcourse.text


def test_no_module_of_text_imports_one_that_imports_it():
    """Oracle: a topological order exists; CycleError would name the circle."""
    imports = {}
    for file in Path(llmcourse.text.__file__).parent.glob("*.py"):
        nodes = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)]
        imports[f"llmcourse.text.{file.stem}"] = {n.module for n in nodes if (n.module or "").startswith("llmcourse.text.")}
    assert sum(map(len, imports.values())) > 10
    order = list(TopologicalSorter(imports).static_order())
    assert order.index("llmcourse.text.stream") < order.index("llmcourse.text.tokenizer")
