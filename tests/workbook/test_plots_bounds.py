"""The map of lesson 06. Oracle: bytes and FLOPs of Llama-3-8B, counted by hand for the corners."""

from __future__ import annotations

import pytest

from llmcourse.measure.cards import CARDS
from llmcourse.measure.known_models import MODELS
from llmcourse.measure.roofline import Ceilings
from llmcourse.workbook import plots
from llmcourse.workbook.plots.bounds import regime

H100, LLAMA = CARDS["NVIDIA H100 SXM"], MODELS["Llama-3-8B"]
PICTURES = {"bound_map": lambda: plots.bound_map(H100, LLAMA, 16, "NVIDIA H100 SXM")}
SAID = {"bound_map": "Arithmetic is what it waits for from 512 requests on, and with 4,096 of them up to 256 tokens of context"}


@pytest.mark.parametrize("machine, requests, context, waits_for", [
    (H100, 1, 128, "w"),              # 16 GB of weights, 17 MB of cache
    (H100, 4096, 128, "c"),           # 66 TFLOP are 66 ms, 85 GB are 25 ms
    (H100, 4096, 131_072, "k"),       # 70 TB of keys and values
    (Ceilings(1e12, 1e9), 1, 128, "c"),  # a machine that hardly computes
])  # fmt: skip
def test_a_step_waits_for_what_takes_longest(machine, requests, context, waits_for):
    assert regime(machine, LLAMA, requests, context, 16) == waits_for


def test_fewer_bits_of_the_weights_never_make_it_wait_for_them_where_it_did_not():
    for requests in (1, 16, 256):
        for context in (128, 4096):
            if regime(H100, LLAMA, requests, context, 16) != "w":
                assert regime(H100, LLAMA, requests, context, 4) != "w"
