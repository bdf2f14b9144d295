"""What an exercise forbids, in words. Oracle: the names of `forbids`."""

from __future__ import annotations

import ast

import pytest

from llmcourse import checks
from llmcourse.workbook import author
from llmcourse.workbook.bans import ban_sentence, with_ban
from llmcourse.workbook.course import PACKAGE, Course

REPOSITORY = Course(PACKAGE.parent)


def test_functions_of_several_owners_are_told_together_and_modules_as_a_whole():
    said = ban_sentence(["torch.softmax", "torch.Tensor.softmax", "torch._C._nn.x", "statistics", "torch.nn.attention"])
    assert said == "Not allowed here: softmax of torch and torch.Tensor; anything from statistics and torch.nn.attention."
    assert ban_sentence([]) == ""


@pytest.mark.parametrize("docstring", ['"""One line."""', '"""Two.\n\n    Lines.\n    """'])
def test_the_sentence_stands_at_the_end_of_the_docstring_and_changes_no_code(docstring):
    source = f"def f(x):\n    {docstring}\n    return x"
    changed = with_ban(source, "f", ["statistics"])
    node = ast.parse(changed).body[0]
    assert ast.get_docstring(node).endswith("\n\nNot allowed here: anything from statistics.")
    assert ast.get_docstring(node).startswith(ast.get_docstring(ast.parse(source).body[0]))
    assert ast.unparse(node.body[1]) == "return x" and len(node.body) == 2


@pytest.mark.parametrize("name", author.sources(REPOSITORY))
def test_every_ban_of_a_lab_is_in_the_docstring_of_its_exercise(name):
    exercises = checks.lesson(name[:2]).exercises
    cells = {c["metadata"]["llmcourse"].get("exercise"): c["source"] for c in author.generate(REPOSITORY, name, "exercise")["cells"]
             if c["metadata"].get("llmcourse", {}).get("role") == "answer"}
    for one, exercise in exercises.items():
        doc = ast.get_docstring(next(n for n in ast.parse(cells[one]).body if getattr(n, "name", "") == one))
        told = doc[doc.index("Not allowed here:"):]
        for ban in exercise.forbids:
            assert "._" in ban or ban.rpartition(".")[2] in told, f"{name}.{one} does not say that {ban} is forbidden"
