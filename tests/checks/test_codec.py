"""Encoded results: oracle is the value itself, read back from JSON text; comparisons are exact unless said otherwise."""

from __future__ import annotations

import collections
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llmcourse.checks.codec import MAX_BYTES, encode
from llmcourse.checks.compare import compare
from llmcourse.checks.probe import Tolerance

EXACT = Tolerance(0.0, 0.0)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


def through_json(value):
    return json.loads(json.dumps(encode(value)))


class EqualToEverything:
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class LyingTensor(torch.Tensor):
    @property
    def shape(self):
        return torch.Size([2])

    def tolist(self):
        return [1.0, 2.0]


class OwnInt(int):
    pass


@given(plain)
def test_plain_data_equals_itself_after_a_trip_through_json(value):
    assert compare(through_json(value), through_json(value), EXACT) is None


@given(plain, plain)
def test_values_that_compare_equal_are_of_the_same_type_and_content(one, other):
    same = compare(through_json(one), through_json(other), EXACT) is None
    if same and not isinstance(one, int):
        assert repr(one) == repr(other) or one == other
        assert type(one) is type(other)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_a_tensor_of_every_dtype_and_shape_equals_itself(dtype, shape):
    value = (torch.arange(6).reshape(2, 3).float() - 2.5).to(getattr(torch, dtype))
    value = value.reshape(-1)[: torch.Size(shape).numel()].reshape(shape)
    assert compare(through_json(value), through_json(value), EXACT) is None


def test_a_view_is_encoded_as_what_it_shows():
    base = torch.arange(12.0).reshape(3, 4)
    assert through_json(base.T[1:3]) == through_json(base.T[1:3].clone())


def test_a_tensor_that_needs_a_gradient_and_a_parameter_are_tensors():
    value = torch.tensor([1.0, 2.0])
    assert through_json(value.clone().requires_grad_()) == through_json(torch.nn.Parameter(value)) == through_json(value)


@pytest.mark.parametrize("liar", [EqualToEverything(), OwnInt(3), torch.ones(2).as_subclass(LyingTensor), object, len,
                                  np.ones(2).view(np.matrix), iter([1])])
def test_what_is_not_plain_data_is_an_object_and_equals_nothing(liar):
    form = through_json(liar)
    assert form[0] == "object"
    assert compare(form, form, EXACT).status == "wrong values"


def test_dictionaries_of_the_standard_library_count_as_dictionaries():
    pairs = [("a", 2), ("b", 1)]
    kinds = (collections.Counter(dict(pairs)), collections.OrderedDict(pairs), collections.defaultdict(int, pairs))
    assert all(through_json(kind) == through_json(dict(pairs)) for kind in kinds)


def test_numpy_numbers_count_as_pythons():
    assert through_json([np.int64(3), np.float64(0.5), np.bool_(True)]) == through_json([3, 0.5, True])


def test_a_list_that_contains_itself_ends():
    endless: list = []
    endless.append(endless)
    assert "nested too deeply" in json.dumps(encode(endless))


@pytest.mark.parametrize("large", [torch.zeros(MAX_BYTES), b"x" * (MAX_BYTES + 1), [0] * MAX_BYTES])
def test_what_is_too_large_for_the_pipe_is_said_to_be(large):
    assert "larger than" in encode(large)[1]


def test_an_enormous_integer_is_not_written_out():
    assert encode(1 << 100_000)[0] == "object"


@pytest.mark.parametrize("value, plain", [
    (np.int64(0), 0), (np.float32(0), 0.0), (np.bool_(False), False), (np.uint8(0), 0), (np.float64(0), 0.0),
    (np.int64(7), 7), (np.float32(1.5), 1.5), (np.bool_(True), True), (np.longdouble(2.5), 2.5),
])
def test_a_number_of_numpys_is_that_number_also_where_it_is_falsy(value, plain):
    for wrapped, wanted in ((value, plain), ([value], ["list", [plain]]), ({value: 1}, ["dict", [[plain, 1]]])):
        assert encode(wrapped) == wanted and type(encode(value)) is type(plain)


def test_a_class_that_only_says_it_is_numpys_has_no_form():
    class Liar(np.int64):
        def item(self):
            return 41

    Liar.__module__ = "numpy"
    assert encode(Liar(3))[0] == "object"
