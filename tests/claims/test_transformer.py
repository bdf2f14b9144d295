"""The statements of lesson 04: verdicts follow the numbers, and planted ones fail."""

from __future__ import annotations

import pytest
from llmcourse.claims import CORRECTED, FAILS, HOLDS, claims, transformer


@pytest.mark.parametrize("names, verdict", [
    (["up", "down"], HOLDS), (["gate", "up", "down"], CORRECTED), ([], FAILS), (["up"], FAILS), (["a", "b", "c", "d"], FAILS),
])  # fmt: skip
def test_two_matrices_hold_three_are_a_correction_and_any_other_number_is_neither(names, verdict):
    assert transformer.judge_matrices(names).verdict == verdict


@pytest.mark.parametrize("hits, agree, verdict", [
    ({0: 0.1, 1: 0.4, 2: 0.2}, True, HOLDS), ({0: 0.1, 1: 0.4, 2: 0.2}, False, FAILS), ({0: 0.5, 1: 0.4}, True, FAILS),
    ({0: 0.05, 1: 0.06, 2: 0.05}, True, FAILS),  # planted: a model that says “the” everywhere
    ({0: 0.0, 1: 0.0, 2: 0.0}, True, FAILS),     # planted: one that says a token that is not in the text
])  # fmt: skip
def test_the_last_row_must_speak_of_the_next_token_and_generation_must_follow_it(hits, agree, verdict):
    assert transformer.judge_rows("", hits, agree).verdict == verdict


def test_hits_are_counted_where_there_is_a_token_ahead():
    assert transformer.share_of_hits([2, 3, 9, 5], [1, 2, 3, 4], 1) == pytest.approx(2 / 3)
    assert transformer.share_of_hits([2, 3, 9, 3], [1, 2, 3, 4], -1) == pytest.approx(1 / 3)


def test_c08_is_measured_and_corrected():
    found = claims(["c08"])[0].check().found
    assert found.verdict == CORRECTED and "3 matrices in a layer (gate_proj, up_proj, down_proj)" in found.measured


def test_c09_is_measured_and_holds():
    found = claims(["c09"])[0].check().found
    assert found.verdict == HOLDS and f"{transformer.WRITTEN} of {transformer.WRITTEN} generated" in found.measured
