"""From outcomes to a result. A worker's outcomes are any JSON: hypothesis makes some."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmcourse.checks import Exercise, Lesson, Probe
from llmcourse.checks.probe import Tolerance
from llmcourse.grade.supervise import Supervised
from llmcourse.grade.reader import ReadNotebook
from llmcourse.grade.reference import Reference
from llmcourse.grade.report import page
from llmcourse.grade.printable import printable
from llmcourse.grade.results import HIDDEN_CODE, graded

WANT = {"kind": "value", "value": ["list", [1, 2]]}
LESSON = Lesson(
    "01",
    "small",
    {"f": Exercise("f", ("a", "b", "c"))},
    (
        Probe("01", "f", "shown", len, 2, "the shown hint", False, Tolerance(), 5.0),
        Probe("01", "f", "unseen", len, 1, "the unseen hint", True, Tolerance(), 5.0),
    ),
)
IDS = [probe.id for probe in LESSON.probes]
REFERENCE = Reference(
    dict.fromkeys(IDS, WANT),
    {},
    {"f": [["It counts from one.", dict.fromkeys(IDS, {"kind": "value", "value": 7})]]},
    [],
    {},
    [],
)
READ = ReadNotebook(n_cells=3, import_cells=[1])


def result(shown: object = WANT, unseen: object = WANT, problems: tuple = (), read: ReadNotebook = READ) -> dict:
    return graded(LESSON, REFERENCE, read, Supervised(dict(zip(IDS, (shown, unseen))), {}, list(problems)))


def problem(cell: int, error: str) -> dict:
    return {"cell": cell, "error": error, "message": "m", "line": 1}


def test_full_marks_for_what_the_reference_gives():
    found = result()
    assert (found["status"], found["score"], found["max"]) == ("ok", 3, 3)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
kinds = st.sampled_from(["value", "raised", "not written", "timeout", "forbidden", "process died", "not run", "ok", ""])


@given(
    st.dictionaries(
        st.sampled_from(
            ["value", "name", "by", "error", "message", "line", "code", "inside", "seconds", "signal", "why"]
        ),
        anything,
    ),
    kinds | anything,
)
def test_whatever_a_worker_sends_gives_no_points_and_a_result_that_can_be_written(outcome, kind):
    found = result({**outcome, "kind": kind}, {**outcome, "kind": kind})
    assert found["score"] == 0 or outcome["value"] == WANT["value"]
    json.dumps(found)
    framed = {
        **found,
        "submission": "x",
        "previous": None,
        "trusted": False,
        "isolation": "process",
        "course_version": "0",
        "seconds": 0.0,
        "graded": "",
        "file": "x",
    }
    assert page(framed).encode("utf-8")


@pytest.mark.parametrize("kind", ["timeout", "process died", "not run", "forbidden"])
def test_what_is_not_an_honest_answer_makes_the_status_problems(kind):
    found = result({"kind": kind, "name": "torch.softmax"})
    assert found["status"] == "problems" and kind in found["reason"]


def test_an_answer_that_ends_the_program_makes_the_status_problems():
    found = result({"kind": "raised", "error": "SystemExit", "message": ""})
    assert found["status"] == "problems" and "SystemExit" in found["reason"]


@pytest.mark.parametrize(
    "outcome",
    [{"kind": "raised", "error": "ValueError"}, {"kind": "not written", "name": "f"}, {"kind": "value", "value": 3}],
)
def test_wrong_and_unwritten_answers_are_honest(outcome):
    assert result(outcome)["status"] == "ok"


def test_a_failed_import_comes_before_what_failed_earlier():
    found = result(
        problems=(problem(2, "ZeroDivisionError"), problem(5, "ModuleNotFoundError"), problem(1, "SyntaxError"))
    )
    assert [one["cell"] for one in found["problems"]] == [5, 1, 2]
    assert found["reason"].startswith("cell 5, line 1: ModuleNotFoundError")


def test_a_cell_that_plays_with_hidden_code_is_a_warning_and_no_problem():
    found = result(problems=(problem(4, HIDDEN_CODE),))
    assert (found["status"], found["problems"]) == ("ok", []) and "cell 4" in found["warnings"][0]


def test_a_hidden_probe_tells_its_name_and_hint_but_no_values():
    found = result(unseen={"kind": "value", "value": ["list", [1, 99]]})
    test = found["tests"][1]
    assert (test["title"], test["hint"], test["detail"]) == ("unseen", "the unseen hint", "")


def test_the_reason_for_a_died_hidden_probe_tells_nothing_that_it_said():
    assert result(unseen={"kind": "process died", "signal": "the input was 41"})["reason"] == "f: process died"


@pytest.mark.parametrize("kind", ["forbidden", "raised", "not written", "not run", "process died"])
def test_nothing_that_a_worker_says_of_a_hidden_probe_is_told(kind):
    words = dict.fromkeys(("name", "by", "error", "message", "code", "inside", "signal", "why"), "the input was 41")
    assert "41" not in json.dumps(result(unseen={**words, "kind": kind, "line": 1}))


@pytest.mark.parametrize("kind", ["forbidden", "not written"])
def test_a_name_that_is_not_the_labs_is_not_told(kind):
    assert "41" not in json.dumps(result({"kind": kind, "name": "the input was 41", "by": ["41"]}))


def test_the_known_wrong_answer_that_fits_is_named():
    seven = {"kind": "value", "value": 7}
    assert result(seven, seven)["exercises"][0]["mistake"] == "It counts from one."
    assert result(seven)["exercises"][0]["mistake"] == ""


def test_an_empty_notebook_is_no_honest_zero():
    unwritten = {"kind": "not written", "name": "f"}
    assert result(unwritten, unwritten, read=ReadNotebook())["status"] == "problems"


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\nb", "\u202egpj.exe", "\ud800", "\x85", "a\u200bb", "\u2028", "\ufeff", "\u3164", "\U000e0041"])
def test_no_control_character_reaches_a_terminal_or_a_table(text):
    assert printable(text).isprintable() and printable(text).isascii()


def test_ordinary_text_in_any_script_stays_as_it_is():
    assert printable("naïve 日本語 🙂") == "naïve 日本語 🙂"
