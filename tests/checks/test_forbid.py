"""Forbidden calls: by alias, through a library, in a thread, by assignment; and what is not a forbidden call."""

from __future__ import annotations

import sys
import threading
from types import ModuleType

import pytest
import torch

from llmcourse.checks import Answer
from llmcourse.checks.run import run_probe
from tests.checks.sample_probes import a_probe, written

FORBIDS = ("torch.softmax", "torch.nn.functional.scaled_dot_product_attention", "json", "torch.Tensor.softmax", "math.sqrt")


def of_three_numbers(answer, rng):
    return answer.total(rng.normal(3))


def outcome(source: str, forbids=FORBIDS) -> dict:
    return run_probe(a_probe(of_three_numbers), written(source), 7, forbids=forbids)


@pytest.mark.parametrize("source, name", [
    ("import torch\ndef total(x): return torch.softmax(x, 0)", "torch.softmax"),
    ("from torch import softmax as s\ndef total(x): return s(x, 0)", "torch.softmax"),
    ("def total(x): return x.softmax(0)", "torch.Tensor.softmax"),
    ("def total(x): return getattr(x, 'soft' + 'max')(0)", "torch.Tensor.softmax"),
    ("import json\ndef total(x): return json.dumps([1])", "json"),
    ("def total(x):\n    import json\n    return json.loads('1')", "json"),
    ("def total(x):\n    try:\n        from math import sqrt\n        return sqrt(4)\n    except BaseException:\n        return 2", "math.sqrt"),
    ("from math import sqrt as total", "math.sqrt"),
    ("from json import dumps as total", "json"),
    ("import functools, json\ntotal = functools.partial(json.dumps)", "json"),
    ("import threading, json\ndef total(x):\n    t = threading.Thread(target=lambda: json.dumps([1]))\n    t.start(); t.join()", "json"),
    ("import torch.nn.functional as F\ndef total(x):\n    q = x.reshape(1, 1, 3)\n    return F.scaled_dot_product_attention(q, q, q)",
     "torch.nn.functional.scaled_dot_product_attention"),
    ("import functools, json\n@functools.lru_cache\ndef total(x): return json.dumps([1])", "json"),
    ("import json\nclass total:\n    def __init__(self, x): json.dumps([1])", "json"),
])
def test_a_forbidden_call_is_found_under_any_name(source, name):
    assert outcome(source) == {"kind": "forbidden", "name": name}


@pytest.mark.parametrize("source", [
    "import torch\ndef total(x):\n    e = torch.exp(x)\n    return e / e.sum()",
    "import json\nfrom torch import softmax\ndef total(x): return 3",
])
def test_elementary_operations_and_mere_imports_are_allowed(source):
    assert outcome(source)["kind"] == "value"


def test_what_the_probe_itself_calls_is_not_the_answers_doing():
    def normalised(answer, rng):
        return answer.total(torch.softmax(rng.normal(3), 0))

    answer = written("def total(x): return x.sum()")
    assert run_probe(a_probe(normalised), answer, 7, forbids=FORBIDS)["kind"] == "value"


def test_a_given_piece_may_call_what_the_answer_may_not(monkeypatch):
    piece = ModuleType("llmcourse.given.lesson_01")
    monkeypatch.setitem(sys.modules, piece.__name__, piece)
    exec("import json\ndef helper(x): return json.dumps([1])", vars(piece))
    answer = written("def total(x): return helper(x)")
    answer.total.__globals__["helper"] = piece.helper
    assert run_probe(a_probe(of_three_numbers), answer, 7, forbids=FORBIDS)["kind"] == "value"


def test_handing_in_a_given_piece_of_the_same_lesson_is_forbidden():
    piece: dict = {"__name__": "llmcourse.given.lesson_01"}
    exec("def total(x): return 3", piece)
    direct = run_probe(a_probe(of_three_numbers), Answer(piece), 7, forbids=("llmcourse.given.lesson_01",))
    assert direct == {"kind": "forbidden", "name": "llmcourse.given.lesson_01"}


def test_switching_the_hook_off_is_itself_forbidden():
    assert outcome("import sys\ndef total(x):\n    sys.setprofile(None)\n    return 3") == {"kind": "forbidden", "name": "sys.setprofile"}


def test_a_forbidden_call_counts_even_where_the_answer_then_raises():
    assert outcome("import json\ndef total(x):\n    json.dumps([1])\n    raise ValueError")["kind"] == "forbidden"


def test_the_profile_hook_of_before_is_back_afterwards():
    def mine(frame, event, argument):
        return None

    sys.setprofile(mine)
    try:
        outcome("def total(x): return 3")
        assert sys.getprofile() is mine and threading.getprofile() is None
    finally:
        sys.setprofile(None)


def test_an_endless_loop_under_the_hook_is_stopped_on_any_thread():
    outcomes: list = []
    answer, probe = written("def total(x):\n    while True: len('a')"), a_probe(of_three_numbers, seconds=0.2)

    def run():
        outcomes.append(run_probe(probe, answer, 7, forbids=FORBIDS)["kind"])

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    worker.join(30)
    run()
    assert outcomes == ["timeout", "timeout"]


OPERATORS = ("torch.softmax", "torch.nn.functional.scaled_dot_product_attention", "torch.Tensor.tolist", "numpy.median")
DETOURS = {
    "map": "def total(x): return next(map(torch.softmax, [x], [0]))",
    "partial": "import functools\ns = functools.partial(torch.softmax, dim=0)\ndef total(x): return s(x)",
    "reduce": "import functools\ndef total(x): return functools.reduce(torch.softmax, [x, 0])",
    "executor": "from concurrent.futures import ThreadPoolExecutor\ndef total(x):\n    with ThreadPoolExecutor(1) as pool:\n"
                "        return pool.submit(torch.softmax, x, 0).result()",
    "swallowed": "def total(x):\n    try:\n        return torch.softmax(x, 0)\n    except RuntimeError:\n        return x",
    "aten": "def total(x): return torch.ops.aten._softmax.default(x, 0, False)",
    "out form": "def total(x): return torch.softmax(x, 0, out=torch.empty(3))",
    "log_softmax": "def total(x): return next(map(torch.log_softmax, [x], [0])).exp()",
    "logsumexp": "def total(x): return next(map(torch.logsumexp, [x], [0]))",
    "masked softmax": "def total(x): return torch._masked_softmax(x[None], torch.zeros(1, 3, dtype=torch.bool), 1)",
    "cross entropy": "def total(x): return torch.nn.functional.cross_entropy(x[None], torch.tensor([1]))",
    "inference mode": "@torch.inference_mode()\ndef total(x): return next(map(torch.softmax, [x], [0]))",
    "gradient": "def total(x): return next(map(torch.softmax, [x.requires_grad_()], [0])).detach()",
    "double": "def total(x): return next(map(torch.softmax, [x.double()], [0])).float()",
    "vmap": "def total(x): return torch.func.vmap(lambda r: next(map(torch.softmax, [r], [0])))(x[None])[0]",
    "sparse": "def total(x): return torch.sparse.softmax(x[None].to_sparse(), 1).to_dense()[0]",
    "mkldnn": "def total(x): return torch.nn.functional.relu(x.to_mkldnn()).to_dense()",
    "nested": "def total(x): return torch.nested.nested_tensor([x]).softmax(-1)[0]",
    "attention": "def total(x):\n    q = x.reshape(1, 1, 1, 3)\n"
                 "    return next(map(torch.nn.functional.scaled_dot_product_attention, [q], [q], [q]))",
    "attention's kernel": "def total(x):\n    q = x.reshape(1, 1, 1, 3)\n"
                          "    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, q, q)[0]",
    "attention by formula": "def total(x):\n    q = x.reshape(1, 1, 1, 3)\n"
                            "    return torch.ops.aten._scaled_dot_product_attention_math(q, q, q)[0]",
    "method by map": "def total(x): return next(map(torch.Tensor.tolist, [x]))",
    "numpy": "import numpy\ndef total(x): return float(numpy.median([1.0, 2.0]))",
    "numpy by map": "import numpy\ndef total(x): return float(next(map(numpy.median, [[1.0, 2.0]])))",
    "a frame named as the course's": "def total(x):\n    space = {'__name__': 'llmcourse.given.lesson_01', 't': torch, 'x': x}\n"
                                     "    exec('y = t.softmax(x, 0)', space)\n    return space['y']",
    "by the course's own raises": "from llmcourse.checks import raises\ndef total(x): return raises(ValueError, torch.softmax, x, 0)",
}


@pytest.mark.parametrize("source", DETOURS.values(), ids=DETOURS)
def test_no_detour_leads_around_a_forbidden_call(source):
    assert outcome("import torch\n" + source, OPERATORS)["kind"] == "forbidden"


def test_a_scripted_function_is_refused_too(tmp_path, monkeypatch):
    """TorchScript reads sources from files only."""
    (tmp_path / "scripted_softmax.py").write_text("import torch\n@torch.jit.script\ndef fast(x):\n    return torch.softmax(x, 0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert outcome("from scripted_softmax import fast\ndef total(x): return fast(x)", OPERATORS) == {
        "kind": "forbidden", "name": "torch.softmax"}


def test_afterwards_the_operators_are_what_they_were():
    x = torch.randn(2, 3, requires_grad=True)
    want = torch.softmax(x, -1)
    outcome("import torch\ndef total(x): return torch.softmax(x, 0)", OPERATORS)
    assert torch.equal(torch.softmax(x, -1), want) and torch.softmax(x, -1).requires_grad
    assert torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]).shape == (1, 2, 3)
    assert "tolist" not in vars(torch.Tensor) and x.detach().to_sparse().is_sparse


@pytest.mark.skipif(not hasattr(torch.library, "get_kernel"), reason="this PyTorch does not give its kernels back")
def test_the_probe_itself_may_call_the_operators_and_gets_the_same_numbers():
    def normalised(answer, rng):
        x = rng.normal(3)
        return answer.total(x), torch.softmax(x, 0), torch.logsumexp(x, 0), x.tolist()

    answer = written("def total(x): return x.exp() / x.exp().sum()")
    watched, alone = (run_probe(a_probe(normalised), answer, 7, forbids=names) for names in (OPERATORS, ()))
    assert watched == alone and watched["kind"] == "value"


def test_an_operator_is_refused_only_where_an_exercise_forbids_it():
    assert outcome("import torch\ndef total(x): return torch.softmax(x, 0)", ("torch.cdist", "json"))["kind"] == "value"


def total(x):
    return x.exp() / x.exp().sum()


def test_who_asks_for_the_check_from_the_answers_own_notebook_is_not_the_answer():
    """This module is both: encoding the result calls `Tensor.numpy`, below a frame of the answer's own namespace."""
    assert run_probe(a_probe(of_three_numbers), Answer({"total": total}), 7, forbids=("torch.Tensor.numpy",))["kind"] == "value"
