"""Import what a cell imports before its clock starts: loading torch from a slow disk is not the learner's code being slow."""

from __future__ import annotations

import ast
import importlib


def import_ahead(tree: ast.Module) -> None:
    """Import the modules that stand in import statements at the cell's top level.

    What fails is left to the cell itself, whose own import then fails with a line number.
    """
    for name in _imported(tree):
        try:
            importlib.import_module(name)
        except BaseException:  # whatever it was, the statement itself raises it again, inside the cell
            return


def _imported(tree: ast.Module) -> list[str]:
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return names
