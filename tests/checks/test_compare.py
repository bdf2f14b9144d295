"""Words for a difference. Oracle: typed by hand, the sentence that a learner should read."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llmcourse.checks.codec import encode
from llmcourse.checks.compare import compare
from llmcourse.checks.probe import Tolerance, raises

CLOSE = Tolerance(rtol=1e-3, atol=1e-4)
EXACT = Tolerance(0.0, 0.0)


def difference(got, want, tolerance=CLOSE):
    return compare(encode(got), encode(want), tolerance)


@pytest.mark.parametrize("got, want, status, sentence", [
    (None, [1], "returned None", "got None, want [1]"),
    ([None, 2], [1, 2], "returned None", "at result[0]: got None, want 1"),
    ("3", 3, "wrong type", "got '3', want 3"),
    (True, 1, "wrong type", "got True, want 1"),
    (2.0, 2, "wrong type", "got 2.0, want 2"),
    ([1, 2], (1, 2), "wrong type", "got [1, 2], want (1, 2)"),
    ([1, 2, 9], [1, 2, 3], "wrong values", "at result[2]: got 9, want 3"),
    ([1, 2], [1, 2, 3], "wrong values", "got a list of 2 items, want a list of 3 items (the first 2 agree)"),
    ([[1], [2, 5]], [[1], [2, 4]], "wrong values", "at result[1][1]: got 5, want 4"),
    ({"ttft": 1.0}, {"ttft": 2.0}, "wrong values", "at result['ttft']: got 1.0, want 2.0"),
    ({}, {"ttft": 2.0}, "wrong values", "at result['ttft']: got no such key, want 2.0"),
    ({"a": 1, "b": 2}, {"a": 1}, "wrong values", "at result['b']: got 2, want no such key"),
    ("token", "taken", "wrong values", "got 'token', want 'taken'"),
    (b"\xe6", b"\xe7", "wrong values", "got b'\\xe6', want b'\\xe7'"),
])
def test_a_difference_is_said_in_a_sentence(got, want, status, sentence):
    found = difference(got, want)
    assert (found.status, str(found)) == (status, sentence)


def test_a_late_difference_in_a_long_text_is_shown_where_it_is():
    found = difference("a" * 200 + "x", "a" * 200 + "y")
    assert str(found) == "at result[200:]: got 'x', want 'y'"


def test_a_tensor_of_another_shape_is_a_wrong_shape():
    found = difference(torch.zeros(2, 3), torch.zeros(3, 2))
    assert (found.status, str(found)) == ("wrong shape", "got [2, 3], want [3, 2]")


def test_a_tensor_of_another_dtype_is_a_wrong_type():
    found = difference(torch.zeros(2).double(), torch.zeros(2))
    assert (found.status, str(found)) == ("wrong type", "got a float64 tensor, want a float32 tensor")


def test_the_first_wrong_element_of_a_tensor_is_named_with_both_values():
    want = torch.arange(6.0).reshape(2, 3)
    got = want.clone()
    got[1, 0], got[1, 2] = 30.0, 50.0
    assert str(difference([got], [want])) == "at result[0][1, 0]: got 30, want 3"


def test_a_float_inside_the_tolerance_is_right_and_outside_is_wrong():
    assert difference(1.0005, 1.0) is None
    assert difference(1.002, 1.0).status == "wrong values"
    assert difference(torch.tensor([1.0005]), torch.tensor([1.0])) is None
    assert difference(torch.tensor([1.002]), torch.tensor([1.0])).status == "wrong values"


def test_exact_comparison_sees_the_last_bit():
    assert difference(torch.tensor([1.0 + 2**-23]), torch.tensor([1.0]), EXACT).status == "wrong values"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinities_equal_only_themselves(value):
    assert difference(value, value) is None
    assert difference(torch.tensor([value]), torch.tensor([value])) is None
    assert difference(1.0, value).status == "wrong values"
    assert difference(torch.tensor([1.0]), torch.tensor([value])).status == "wrong values"


def test_an_int_passes_for_a_float():
    assert difference(2, 2.0) is None


def test_integers_are_exact_whatever_the_tolerance():
    loose = Tolerance(rtol=1.0, atol=10.0)
    assert difference(5, 6, loose).status == "wrong values"
    assert difference(torch.tensor([5]), torch.tensor([6]), loose).status == "wrong values"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["list", "tuple", "tensor", "array", "dict", "bytes", "object", "float32"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2), max_leaves=8)


@given(json_values, st.sampled_from([[1, 2], {"a": 1.5}, torch.zeros(2, 2), b"abc", "x", 4]))
def test_any_json_from_a_hostile_process_is_judged_and_never_passes(got, want):
    found = compare(got, encode(want), CLOSE)
    assert found is not None or got == encode(want)


@pytest.mark.parametrize("hostile", [
    ["tensor", "float32", [10**9, 10**9], ""], ["tensor", "float32", [-1], ""], ["tensor", "object", [1], "AAAA"],
    ["tensor", "float32", [2, 2], "!!"], ["tensor"], [], ["tensor", ["float32"], [2, 2], ""], ["array", "float32", [True], "AAAAAA=="],
])
def test_a_malformed_tensor_is_a_wrong_type(hostile):
    assert compare(hostile, encode(torch.zeros(2, 2)), CLOSE).status == "wrong type"


def test_an_error_is_judged_by_what_the_judge_expects():
    """Oracle: Python's own `except`: a subclass is caught, and neither True nor another error passes for it."""
    class Narrower(ValueError):
        pass

    def fails(error):
        raise error

    want, exact = encode([raises(ValueError, fails, ValueError("x"))]), Tolerance(0.0, 0.0)
    assert compare(encode([raises(ValueError, fails, Narrower("x"))]), want, exact) is None
    found = compare(encode([raises(ValueError, len, [])]), want, exact)
    assert (found.status, found.got, found.want) == ("wrong values", "no error", "ValueError")
    assert compare(encode([True]), want, exact).status == "wrong type"
    forged = ["list", [["raised", ["builtins.KeyError"], ["builtins.KeyError"]]]]
    assert compare(forged, want, exact).status == "wrong values"
