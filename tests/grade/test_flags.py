"""Flags and the seal: what an instructor is shown, and what counts as changed code."""

from __future__ import annotations

import builtins
import sys

import pytest
import torch

from llmcourse.checks.probe import raises
from llmcourse.grade.flags import flags
from llmcourse.grade.seal import Seal
from llmcourse.workbook.choosing import Piece

ODD = {
    "import ctypes": "import ctypes",
    "from llmcourse.checks import raises": "import llmcourse.checks",
    "import gc": "import gc",
    "import sys\nsys.settrace(None)": "sys.settrace",
    "import threading\nthreading.setprofile(None)": "threading.setprofile",
    "import sys\nf = sys._getframe().f_back": ".f_back",
    "def f(g): return g.__globals__": ".__globals__",
    "import torch\ny = torch.ops.aten.exp": ".ops",
    "%%time\nimport ctypes": "import ctypes",
}


@pytest.mark.parametrize("source", ODD)
def test_what_honest_answers_do_not_need_is_flagged_with_its_place(source):
    assert any(one.startswith("cell 4, line ") and one.endswith(": " + ODD[source]) for one in flags([Piece("cell 4", source, 4)]))


def test_honest_code_has_no_flag_and_wrong_syntax_is_passed_over():
    honest = "import math\nimport torch\nfrom collections import Counter\ndef f(x):\n    return torch.exp(x).sum(dim=-1)"
    assert flags([Piece("cell 1", honest, 1), Piece("cell 2", "def (", 2)]) == []


def test_a_seal_notices_replaced_functions_their_code_and_python_and_torch_and_is_whole_again_afterwards(monkeypatch):
    seal = Seal()
    assert seal.broken() == ""
    for owner, name, value, said in ((sys.modules[raises.__module__], "raises", lambda *a: True, "raises"), (builtins, "all", any, "builtins.all"),
                                     (torch, "equal", any, "torch.equal"), (torch.Tensor, "__eq__", any, "torch.Tensor.__eq__"),
                                     (raises, "__code__", (lambda error, function: True).__code__, "raises")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            assert seal.broken().endswith(said)
    assert seal.broken() == ""


def test_what_a_notebook_may_set_breaks_no_seal():
    seal, dtype = Seal(), torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert seal.broken() == ""
    finally:
        torch.set_default_dtype(dtype)
