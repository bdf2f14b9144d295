"""IPython's own lines in a cell (%magic, %%magic, !command, help?), as IPython itself reads them, turned into Python.

The transformation is IPython's; what a magic does with Python code in it (%time, %%time, %%capture) is written out, so
that a reader of the tree sees the code. Nothing is executed.
"""

from __future__ import annotations

import ast
import re

RUNS_ITS_CODE = ("time", "capture", "prun", "debug", "pdb")
HARMLESS = {
    *RUNS_ITS_CODE, "timeit", "matplotlib", "load_ext", "reload_ext", "autoreload", "config", "pinfo", "pinfo2", "psource",
    "pdoc", "pdef", "pfile", "pip", "conda", "mamba", "uv", "who", "who_ls", "whos", "precision", "xmode", "magic",
    "lsmagic", "quickref", "history", "colors", "pprint",
}  # fmt: skip
_NO_IPYTHON = "this line is IPython's, and IPython is not installed: pip install 'llmcourse[lab]'"


def to_python(source: str) -> str:
    """A cell that Python alone does not understand, as Python, each statement on the line where it was.

    Raises SyntaxError.
    """
    try:
        from IPython.core.inputtransformer2 import TransformerManager
    except ImportError:
        if re.search(r"(?m)^\s*[%!?]|\?\s*$|=\s*[%!]", source):
            raise SyntaxError(_NO_IPYTHON) from None
        return source
    n_empty = len(source) - len(source.lstrip("\n"))  # IPython drops empty lines at the top
    lines = ("\n" * n_empty + TransformerManager().transform_cell(source)).split("\n")
    for node in ast.parse("\n".join(lines)).body:
        name, line, body = _magic(node.value) if isinstance(node, ast.Expr) else ("", "", None)
        if name not in RUNS_ITS_CODE:
            continue
        first = node.lineno - 1
        if body is None:
            lines[first] = without_options(line)
        else:  # a magic of the whole cell is all there is
            sets_a_variable = name == "capture" and without_options(line)
            head = f"get_ipython().run_cell_magic({name!r}, {line!r}, '')" if sets_a_variable else ""
            return "\n" * first + head + "\n" + (body if _is_python(body) else to_python(body))
    return "\n".join(lines)


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def without_options(line: str) -> str:
    """A magic's line without the options at its start: "-n 3 f(x)" is "f(x)"."""
    return re.sub(r"^(\s*--?\w[\w-]*(\s+\d+)?)+", "", line).strip()


def _magic(value: ast.expr) -> tuple[str, str, str | None]:
    """(name, line, body) of `get_ipython().run_cell_magic(…)` or run_line_magic, whose body is None; "" for another."""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return "", "", None
    words = [one.value for one in value.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if len(words) != len(value.args) or not _is_shell(value.func.value):
        return "", "", None
    if value.func.attr == "run_cell_magic" and len(words) == 3:
        return words[0], words[1], words[2]
    return (words[0], words[1], None) if value.func.attr == "run_line_magic" and len(words) == 2 else ("", "", None)


def _is_shell(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "get_ipython"


def not_run(tree: ast.Module) -> list[str]:
    """What in a cell only a kernel does, as a learner wrote it: ["%%bash", "!ls"]."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_shell(node.func.value):
            name, _, body = _magic(node)
            if name and name not in HARMLESS:
                found.append(("%" if body is None else "%%") + name)
            elif node.func.attr in ("system", "getoutput") and node.args and isinstance(node.args[0], ast.Constant):
                found.append(f"!{str(node.args[0].value)[:40]}")
    return found
