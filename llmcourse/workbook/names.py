"""Which names a piece of code needs from its notebook, and which it sets there; read from its compiled form, not run."""

from __future__ import annotations

import ast
import builtins
import dis
from collections.abc import Iterable
from types import CodeType

_GLOBAL_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_STORES = ("STORE_NAME", "STORE_GLOBAL")


def compiled(tree: ast.Module, name: str = "<cell>", flags: int = 0) -> CodeType:
    """The code of a cell, as a kernel compiles it: `await` is allowed at the top level. Raises SyntaxError."""
    try:
        return compile(tree, name, "exec", flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (RecursionError, MemoryError, ValueError) as error:
        raise SyntaxError(str(error) or type(error).__name__) from error


def used(nodes: Iterable[ast.stmt]) -> set[str]:
    """Names that these statements, or functions in them, look up in the notebook; without Python's own."""
    return _named(_code(nodes), _GLOBAL_LOADS) - set(dir(builtins))


def bound(nodes: Iterable[ast.stmt]) -> set[str]:
    """Names that these statements set in the notebook."""
    return _named(_code(nodes), _STORES)


def _code(nodes: Iterable[ast.stmt]) -> CodeType:
    return compiled(ast.Module(list(nodes), []))


def _named(code: CodeType, operations: tuple[str, ...]) -> set[str]:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return {one.argval for one in dis.get_instructions(code) if one.opname in operations}.union(
        *(_named(one, operations) for one in inner))
