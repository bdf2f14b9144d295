"""What an exercise may not call, as a sentence: `ban_sentence(forbids)`; and in an answer's docstring: `with_ban`."""

from __future__ import annotations

import ast
import importlib.util
import textwrap
from collections.abc import Iterable

WIDTH = 110


def ban_sentence(forbids: Iterable[str]) -> str:
    """"Not allowed here: …" for the dotted names that an exercise forbids, "" for none.

    Functions of one name or one owner are told together; PyTorch's private aliases are left out.
    """
    public = [name for name in forbids if "._" not in name]
    modules = [name for name in public if _is_module(name)]
    owners: dict[str, list[str]] = {}
    for name in public:
        if name not in modules:
            owner, _, last = name.rpartition(".")
            owners.setdefault(last, []).append(owner)
    groups: dict[tuple[str, ...], list[str]] = {}
    for last, where in owners.items():
        groups.setdefault(tuple(where), []).append(last)
    said = [f"{_and(names)} of {_and(where)}" for where, names in groups.items()]
    said += [f"anything from {_and(modules)}"] if modules else []
    return f"Not allowed here: {'; '.join(said)}." if said else ""


def _is_module(name: str) -> bool:
    if "." not in name:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is a class, or is not installed
        return False


def _and(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def with_ban(source: str, exercise: str, forbids: Iterable[str]) -> str:
    """An answer cell with the sentence at the end of the docstring of its function or class."""
    sentence = ban_sentence(forbids)
    node = next((n for n in ast.parse(source).body if getattr(n, "name", "") == exercise), None)
    if not sentence or node is None or not ast.get_docstring(node):
        return source
    lines, string = source.splitlines(), node.body[0]
    last, indent = string.end_lineno - 1, " " * string.col_offset
    text, quotes = lines[last][:string.end_col_offset - 3].rstrip(), lines[last][string.end_col_offset - 3:]
    added = textwrap.wrap(sentence, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
                          break_on_hyphens=False)
    before = [text] if text else []
    blank = [""] if text or lines[last - 1].strip() else []
    return "\n".join([*lines[:last], *before, *blank, *added, indent + quotes, *lines[last + 1:]])
