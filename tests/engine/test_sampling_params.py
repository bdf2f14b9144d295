"""What SamplingParams accepts, and the noise keyed by seed, stream and position."""

from __future__ import annotations

import math

import pytest

from llmcourse import SamplingParams
from llmcourse.engine.sampling import uniform
from llmcourse.errors import BadSamplingParams


@pytest.mark.parametrize(
    "name, value",
    [
        ("max_tokens", 0), ("max_tokens", 2.5), ("max_tokens", True), ("temperature", -0.1), ("temperature", math.nan),
        ("temperature", math.inf), ("temperature", "hot"), ("top_p", 1.5), ("top_p", -0.1), ("top_k", -1), ("top_k", 1.0),
        ("min_p", 2), ("repetition_penalty", 0), ("repetition_penalty", -1), ("seed", 1.5), ("logprobs", -1),
        ("stop", ("ok", "")), ("stop", (3,)),
    ],
)  # fmt: skip
def test_a_bad_value_is_refused_by_name(name, value):
    with pytest.raises(BadSamplingParams, match=name) as caught:
        SamplingParams(**{name: value})
    assert isinstance(caught.value, ValueError)
    assert repr(value).strip("(),") in str(caught.value)


def test_one_stop_string_may_stand_alone():
    assert SamplingParams(stop="END").stop == ("END",)
    assert SamplingParams(stop=["a", "b"]).stop == ("a", "b")


@pytest.mark.parametrize("value", [0, 1, 0.5])
def test_the_ends_of_the_ranges_are_allowed(value):
    params = SamplingParams(top_p=value, min_p=value, temperature=value)
    assert (params.top_p, params.min_p, params.temperature) == (value, value, value)


def test_noise_depends_on_each_of_seed_stream_and_position():
    numbers = [uniform(*key) for key in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 10, 0), (11, 0, 0)]]
    assert len(set(numbers)) == len(numbers)
    assert all(0 <= number < 1 for number in numbers)
    assert uniform(1, 2, 3) == uniform(1, 2, 3)


def test_noise_is_uniform_over_positions():
    """10,000 numbers in 10 bins of 1,000: standard deviation 30 each; 150 is five of them."""
    bins = [0] * 10
    for position in range(10_000):
        bins[int(uniform(7, 0, position) * 10)] += 1
    assert all(abs(count - 1_000) < 150 for count in bins)
