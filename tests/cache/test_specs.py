"""Caches by name."""

from __future__ import annotations

import pytest
import torch

from llmcourse import Engine
from llmcourse.cache import ContiguousCache, NoCache, QuantizedCache, Scheme, SlidingWindowCache, make_cache, parse_spec
from tests.random_model import TINY, random_model


@pytest.mark.parametrize(
    "spec, kind",
    [("contiguous", ContiguousCache), ("none", NoCache), ("int8", QuantizedCache), ("window:9+1", SlidingWindowCache)],
)
def test_every_kind_is_made_by_name_and_knows_its_spec(spec, kind):
    cache = make_cache(spec, TINY, torch.float32, "cpu")
    assert isinstance(cache, kind) and cache.spec == spec


@pytest.mark.parametrize(
    "spec, scheme",
    [
        ("int8", Scheme(8, "token", 64)), ("int4", Scheme(4, "channel", 32)), ("int8:channel/16", Scheme(8, "channel", 16)),
        ("int4:token/16", Scheme(4, "token", 16)),
    ],
)  # fmt: skip
def test_a_quantized_spec_says_bits_scheme_and_group(spec, scheme):
    assert make_cache(spec, TINY, torch.float32, "cpu").scheme == scheme


@pytest.mark.parametrize("spec, window, n_sink", [("window:1024+4", 1024, 4), ("window:7", 7, 0), ("window:1+0", 1, 0)])
def test_a_window_spec_says_window_and_sinks(spec, window, n_sink):
    assert parse_spec(spec) == ("window", {"window": window, "n_sink": n_sink})


@pytest.mark.parametrize(
    "spec", ["", "gold", "int2", "int4:", "int4:token", "int4:token/0", "int4:row/3",
     "window", "window:0", "window:-3", "window:5+", "window:5+x", "INT8", " int8"]
)
def test_a_spec_that_is_no_cache_names_itself_and_the_forms(spec):
    with pytest.raises(ValueError, match="is no cache; the forms are contiguous, none, paged, paged:512") as raised:
        Engine(random_model(), cache=spec)
    assert repr(spec) in str(raised.value)
