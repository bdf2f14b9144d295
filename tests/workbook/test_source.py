"""The student's version of an answer cell. Oracle: typed by hand."""

from __future__ import annotations

import pytest

from llmcourse.errors import AuthoringError
from llmcourse.workbook.source import efforts, read_source, regions, stub

FUNCTION = '''def f(x: int) -> int:
    """Twice x."""
    helper = 1
    ### BEGIN SOLUTION
    secret = x * 2
    return secret
    ### END SOLUTION'''

CLASS = '''class C:
    """Docs."""

    limit = 3

    ### BEGIN SOLUTION
    def __init__(self, a,
                 b=2):
        self.a = a

    @property
    def size(self) -> int:  # a comment
        """How large."""
        return self.a

    def _private(self):
        return 1

    def one_line(self): return 2
    ### END SOLUTION

    def given(self):
        return 7'''


def test_a_functions_region_becomes_a_raise_and_the_rest_stays():
    assert stub(FUNCTION) == 'def f(x: int) -> int:\n    """Twice x."""\n    helper = 1\n    raise NotImplementedError'


def test_a_classes_public_methods_keep_signature_and_docstring_and_raise():
    assert stub(CLASS) == '''class C:
    """Docs."""

    limit = 3

    def __init__(self, a,
                 b=2):
        raise NotImplementedError

    @property
    def size(self) -> int:  # a comment
        """How large."""
        raise NotImplementedError

    def one_line(self):
        raise NotImplementedError

    def given(self):
        return 7'''


def test_a_region_inside_a_method_is_treated_as_a_functions():
    source = "class C:\n    def f(self):\n        ### BEGIN SOLUTION\n        return 1\n        ### END SOLUTION\n    def g(self): return 2"
    assert stub(source) == "class C:\n    def f(self):\n        raise NotImplementedError\n    def g(self): return 2"


@pytest.mark.parametrize("source", ["### BEGIN SOLUTION", "### END SOLUTION", "### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION"])
def test_a_mark_without_its_partner_is_an_error(source):
    with pytest.raises(AuthoringError, match="partner|without"):
        regions(source)


def test_cells_have_roles_and_effort_cards_belong_to_the_answer_that_follows(tmp_path):
    file = tmp_path / "lab.py"
    file.write_text('# %% [markdown]\n# ### 1.1 First\n# *difficulty 2/5 · 15 minutes · unlocks: the cache*\n\n# %%\nimport math\n\n'
                    '# %% ex="f"\ndef f(): pass\n\n# %% check="f"\ncheck("01.f", f=f)\n\n# %%\nprint(1)\n\n# %% ex="g"\ndef g(): pass\n')
    cells = read_source(file)
    assert [(c.role, c.exercise) for c in cells] == [("text", ""), ("imports", ""), ("answer", "f"), ("check", "f"), ("own", ""),
                                                     ("answer", "g")]
    card, = efforts(cells).values()
    assert (card.name, card.title, card.difficulty, card.minutes, card.unlocks) == ("f", "1.1 First", 2, 15, "the cache")


def test_unknown_cell_metadata_is_an_error(tmp_path):
    file = tmp_path / "lab.py"
    file.write_text('# %% exercise="f"\ndef f(): pass\n')
    with pytest.raises(AuthoringError, match="exercise"):
        read_source(file)
