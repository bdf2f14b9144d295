"""A failing exercise that calls the learner's own failing one. Oracle: which of the two was changed."""

from __future__ import annotations

import pytest

from llmcourse import checks, given
from llmcourse.checks import Answer
from llmcourse.workbook.examine import examine
from llmcourse.workbook.report import report

RIGHT = "def count_pairs(words):\n    counts = {}\n    for ids, times in words:\n        for pair in zip(ids, ids[1:]):\n" \
        "            counts[pair] = counts.get(pair, 0) + times\n    return counts\n"
WRONG = RIGHT.replace("+ times", "+ 1")
OUTER = "def train_bpe(text, vocab_size):\n    return helper(text, vocab_size)\n" \
        "def helper(text, vocab_size):\n    return [list(count_pairs([(list(text.encode()), 7)]).items())]\n"


def told(source: str, exercise: str) -> str:
    space: dict = {"__name__": "__main__"}
    exec(source, space)
    lesson = checks.lesson("01")
    answer = Answer({name: space[name] for name in lesson.exercises if name in space})
    return str(report(examine(lesson, exercise, answer, given.answer("01"))))


@pytest.fixture(scope="module")
def solution() -> str:
    sources = given.answers("01").sources
    imports = "from collections import Counter\nfrom llmcourse.text.pattern import split\nimport codecs\n"
    return imports + "\n".join(sources.values())


def test_a_right_answer_over_a_wrong_one_is_told_so_without_hints(solution):
    text = told(solution + "\n" + WRONG, "train_bpe")
    assert "train_bpe is right by itself: it calls your count_pairs, which fails its own checks. Mend that first." in text
    assert "Hint:" not in text and text.index("right by itself") < text.index("✗")


def test_a_wrong_answer_over_a_wrong_one_is_told_of_both_also_through_a_helper(solution):
    text = told(solution + "\n" + WRONG + OUTER, "train_bpe")
    assert "train_bpe calls your count_pairs, which fails its own checks. Mend that first, then come back." in text


def test_a_wrong_answer_over_a_right_one_is_told_nothing_of_the_other(solution):
    assert "count_pairs" not in told(solution + "\n" + RIGHT + OUTER, "train_bpe")


def test_the_learners_names_are_their_own_again_afterwards(solution):
    space: dict = {"__name__": "__main__"}
    exec(solution + "\n" + WRONG, space)
    before = dict(space)
    answer = Answer({name: space[name] for name in checks.lesson("01").exercises})
    examine(checks.lesson("01"), "train_bpe", answer, given.answer("01"))
    assert {k: v for k, v in space.items() if k != "__builtins__"} == {k: v for k, v in before.items() if k != "__builtins__"}
