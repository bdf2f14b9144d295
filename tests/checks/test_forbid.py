"""Forbidden calls: by alias, through a library, in a thread, by assignment; and what is not a forbidden call."""

from __future__ import annotations

import sys
import threading

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


def test_a_given_piece_may_call_what_the_answer_may_not():
    piece: dict = {"__name__": "llmcourse.given.lesson_01"}
    exec("import json\ndef helper(x): return json.dumps([1])", piece)
    answer = written("def total(x): return helper(x)")
    answer.total.__globals__["helper"] = piece["helper"]
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
