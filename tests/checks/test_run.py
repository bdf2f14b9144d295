"""Running and judging a probe. Each learner's function is source text run in a namespace of its own, as in a notebook."""

from __future__ import annotations

import subprocess
import sys

import pytest

from llmcourse.checks import Answer, raises
from llmcourse.checks.run import Printed, judge, run_probe
from llmcourse.errors import CourseError
from tests.checks.sample_probes import REFERENCE, a_probe, written

def verdict(source: str, probe=None, **options):
    probe = probe or a_probe()
    return judge(probe, run_probe(probe, written(source), 7, **options), run_probe(probe, REFERENCE, 7))


@pytest.mark.parametrize("body, reason, detail", [
    ("return sum(xs)", "ok", ""),
    ("raise NotImplementedError", "not written", "total is still to be written"),
    ("pass", "returned None", "got None"),
    ("return float(sum(xs))", "wrong type", "got"),
    ("return sum(xs) + 1", "wrong values", "got"),
    ("xs = list(xs)\n    return xs[7]", "raised", "IndexError (list index out of range) at line 3 of total: return xs[7]"),
    ("raise SystemExit(3)", "raised", "SystemExit (3) at line 2 of total"),
    ("raise KeyboardInterrupt", "raised", "KeyboardInterrupt at line 2 of total"),
    ("return total(xs)", "raised", "endless recursion: total calls itself at line 2"),
])
def test_each_way_to_be_wrong_has_its_own_reason(body, reason, detail):
    found = verdict(f"def total(xs):\n    {body}\n")
    assert found.reason == reason
    assert detail in found.detail


def test_a_missing_answer_is_not_written():
    found = verdict("other = 1")
    assert (found.reason, found.detail, found.points) == ("not written", "total is still to be written", 0)


def test_an_answer_that_calls_an_unwritten_one_is_told_which():
    found = verdict("def pairs(xs):\n    raise NotImplementedError\ndef total(xs):\n    return pairs(xs)\n")
    assert (found.reason, found.detail) == ("not written", "pairs is still to be written, and total calls it")


def test_an_unwritten_method_is_named_with_its_class():
    def uses_a_class(answer, rng):
        return answer.total().push(1)

    probe = a_probe(uses_a_class)
    outcome = run_probe(probe, written("class total:\n    def push(self, x):\n        raise NotImplementedError\n"), 7)
    assert outcome == {"kind": "not written", "name": "total.push", "by": ""}


@pytest.mark.parametrize("loop", [
    "while True:\n        pass",
    "while True:\n        try:\n            len('a')\n        except KeyboardInterrupt:\n            pass",
    "while True:\n        try:\n            while True:\n                pass\n        except Exception:\n            pass",
    "import time\n    time.sleep(100)",
])
def test_an_endless_loop_is_a_timeout(loop):
    found = verdict(f"def total(xs):\n    {loop}\n", a_probe(seconds=0.2))
    assert (found.reason, found.detail) == ("timeout", "stopped after 0.2 seconds: is there a loop that never ends?")


def test_the_time_factor_scales_the_limit():
    outcome = run_probe(a_probe(seconds=100.0), written("def total(xs):\n    while True: pass\n"), 7, time_factor=0.002)
    assert outcome == {"kind": "timeout", "seconds": pytest.approx(0.2)}


def test_an_exception_whose_message_raises_is_still_reported():
    source = "class Odd(Exception):\n    def __str__(self): return 1/0\ndef total(xs):\n    raise Odd\n"
    assert "its message raised ZeroDivisionError" in verdict(source).detail


def test_prints_go_where_the_caller_says_and_only_their_beginning():
    printed = Printed()
    source = "def total(xs):\n    for i in range(5000): print(i)\n    return sum(xs)\n"
    probe = a_probe()
    assert run_probe(probe, written(source), 7, printed=printed)["kind"] == "value"
    assert printed.getvalue().startswith("0\n1\n2\n") and len(printed.getvalue()) <= 2000


def test_inputs_are_drawn_anew_so_an_answer_that_changes_them_harms_nobody():
    def sees_its_input(answer, rng):
        xs = rng.ints(3, 1, 100)
        return [answer.total(xs), xs]

    found = verdict("def total(xs):\n    s = sum(xs)\n    xs.clear()\n    return s\n", a_probe(sees_its_input))
    assert (found.reason, found.detail) == ("wrong values", "at result[1]: got a list of 0 items, want a list of 3 items")


def test_another_seed_draws_other_inputs_and_the_same_seed_the_same():
    outcomes = [run_probe(a_probe(), REFERENCE, seed)["value"] for seed in (1, 1, 2)]
    assert outcomes[0] == outcomes[1] != outcomes[2]


def test_a_failing_reference_is_the_courses_fault_and_not_a_verdict():
    probe = a_probe()
    with pytest.raises(CourseError, match="01.total/total_of_three"):
        judge(probe, {"kind": "value", "value": 1}, run_probe(probe, Answer({}), 7))


@pytest.mark.parametrize("outcome", [None, 3, [], "ok", {}, {"kind": "ok"}, {"kind": None}, {"kind": ["value"]}])
def test_an_outcome_that_is_none_gains_nothing(outcome):
    probe = a_probe()
    found = judge(probe, outcome, run_probe(probe, REFERENCE, 7))
    assert (found.reason, found.points) == ("process died", 0)


def test_a_hidden_probes_report_shows_the_hint_and_no_values():
    found = verdict("def total(xs):\n    return 0\n", a_probe(hidden=True))
    assert found.as_json() == {"id": "01.total/total_of_three", "exercise": "total", "hidden": True, "points": 0, "max": 2,
                               "reason": "wrong values", "detail": "", "hint": "Add them up."}


def test_raises_tells_the_expected_error_from_none_and_from_another():
    assert raises(ValueError, int, "x")
    assert not raises(ValueError, int, "3")
    with pytest.raises(TypeError):
        raises(ValueError, int, None)


def test_a_stub_does_not_count_as_raising_the_expected_error():
    def stub():
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        raises(RuntimeError, stub)


def test_a_probe_without_tensors_runs_without_torch_or_numpy():
    code = ("import sys; from llmcourse.checks import Answer, Probe; from llmcourse.checks.probe import Tolerance\n"
            "from llmcourse.checks.run import judge, run_probe\n"
            "p = Probe('01', 'f', 'p', lambda a, r: a.f(r.text(9)), 1, 'h', False, Tolerance(), 5)\n"
            "o = run_probe(p, Answer({'f': len}), 1); assert judge(p, o, o).ok\n"
            "assert not {'torch', 'numpy'} & set(sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": "."}).returncode == 0


def test_endless_recursion_under_a_ban_is_recursion_and_no_trick():
    found = verdict("def total(xs):\n    return total(xs)\n", forbids=("statistics",))
    assert found.reason == "raised" and "sys.setprofile" not in found.detail


def test_an_exception_is_told_with_the_hint():
    assert verdict("def total(xs):\n    return xs[7]\n").hint == "Add them up."
