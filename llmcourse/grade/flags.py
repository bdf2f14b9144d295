"""What in a submission an instructor may want to look at: read by the trusted parent's reader, nothing executed.

A flag is no judgement and costs no points; honest answers have none of this. It reaches the instructor's report only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from llmcourse.workbook.choosing import Snippet

_MODULES = ("ctypes", "cffi", "gc", "inspect", "importlib", "marshal", "mmap", "multiprocessing", "pty", "ptrace", "signal",
            "socket", "subprocess", "traceback", "llmcourse.checks", "llmcourse.grade", "llmcourse.given",
            "llmcourse.workbook.answers", "torch.library", "torch._C", "torch._dynamo", "torch._inductor")  # fmt: skip
_CALLS = {
    "sys": {"settrace", "setprofile", "_getframe", "_current_frames", "modules", "meta_path", "path_hooks", "setrecursionlimit"},
    "threading": {"settrace", "setprofile", "settrace_all_threads", "setprofile_all_threads"},
    "os": {"fork", "forkpty", "execv", "execve", "kill", "system", "popen", "environ"},
    "signal": {"signal", "setitimer"},
}
_ATTRIBUTES = {
    "f_globals", "f_locals", "f_back", "f_code", "tb_frame", "gi_frame", "cr_frame", "__globals__", "__builtins__", "__closure__",
    "__code__", "__subclasses__", "currentframe", "get_referrers", "get_objects", "ops", "jit",
}
_NAMES = {"exec", "eval", "compile", "__import__", "__builtins__", "globals", "vars"}
MAX_FLAGS = 50


def flags(pieces: Iterable[Snippet]) -> list[str]:
    """For example ["cell 4, line 2: import ctypes"]; at most 50."""
    found = []
    for piece in pieces:
        if not piece.cell:
            continue  # the lab's own import cell
        try:
            tree = piece.tree()
        except SyntaxError:
            continue
        found += [f"cell {piece.cell}, line {node.lineno}: {what}" for node in ast.walk(tree) if (what := _flag(node))]
    return sorted(set(found), key=found.index)[:MAX_FLAGS]


def _flag(node: ast.AST) -> str:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return _imported(node)
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if node.attr in _CALLS.get(owner, ()):
            return f"{owner}.{node.attr}"
        return f".{node.attr}" if node.attr in _ATTRIBUTES and not (node.attr in ("ops", "jit") and owner != "torch") else ""
    if isinstance(node, ast.Name) and node.id in _NAMES and isinstance(node.ctx, ast.Load):
        return node.id
    return ""


def _imported(node: ast.Import | ast.ImportFrom) -> str:
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = [node.module or "", *(f"{node.module}.{name}" for name in names)]
    bad = [name for name in names if any(name == one or name.startswith(one + ".") for one in _MODULES)]
    return f"import {bad[0]}" if bad else ""
