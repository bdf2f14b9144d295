"""A sliding window per layer: Mistral's in all layers, Qwen's from a layer on, or by a list of types.

Oracle: transformers on the checkpoint that it wrote itself, random weights, at lengths below, at and beyond every window;
tolerance 1e-5 on logits of about 3.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse.engine.engine import Engine
from llmcourse.model.llama import Llama
from llmcourse.model.load import load_model
from llmcourse.ops import CPU, REFERENCE
from tests.tiny_models import write_tiny

LENGTH = 150
QWEN = dict(use_sliding_window=True, num_hidden_layers=3)
WINDOWED = {
    "mistral": ("mistral", dict(sliding_window=9), (9, 9, 9)),
    "mistral of one token": ("mistral", dict(sliding_window=1), (1, 1, 1)),
    "qwen2 from layer 1": ("qwen2", dict(QWEN, sliding_window=11, max_window_layers=1), (None, 11, 11)),
    "qwen3 in turns": (
        "qwen3", dict(QWEN, sliding_window=10, layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
        (10, None, 10)),
    "qwen2 in turns": (
        "qwen2", dict(QWEN, sliding_window=64, layer_types=["full_attention", "sliding_attention", "full_attention"]),
        (None, 64, None)),
}  # fmt: skip
IDS = [(37 * i * i + 11 * i) % 197 for i in range(LENGTH)]


@pytest.fixture(scope="module", params=WINDOWED)
def pair(request, tmp_path_factory):
    """Our reading of a folder, the model that wrote it, and the windows that it must have."""
    kind, overrides, windows = WINDOWED[request.param]
    folder = tmp_path_factory.mktemp("model")
    theirs = write_tiny(folder, kind, **overrides)
    return load_model(folder, device="cpu", dtype="float32"), theirs, windows


@torch.no_grad()
def their_logits(theirs, ids):
    return theirs(torch.tensor([ids])).logits[0]


def test_logits_equal_transformers_at_every_position_below_and_beyond_the_window(pair):
    ours, theirs, windows = pair
    assert ours.config.windows == windows
    want = their_logits(theirs, IDS)
    assert want.abs().max() > 1
    torch.testing.assert_close(ours(IDS), want, atol=1e-5, rtol=0)


def test_the_window_matters_at_this_length(pair):
    """The control: without its windows the same model gives other logits."""
    ours, _, _ = pair
    without = Llama(replace(ours.config, windows=None), ours.weights)
    assert (ours(IDS) - without(IDS)).abs().max() > 1e-2


@pytest.mark.parametrize(("parts", "cache"), [("cpu", "contiguous"), ("reference", "none")])
def test_tokens_generated_beyond_the_window_are_the_likeliest_of_the_whole_text(pair, parts, cache):
    """Oracle: the logits of all tokens at once, which equal transformers'; compared where the lead is above 1e-3."""
    ours, _, _ = pair
    step = None if cache == "none" else 7
    model = Llama(ours.config, ours.weights)  # without the folder, which has no tokenizer
    engine = Engine(model, parts={"reference": REFERENCE, "cpu": CPU}[parts], cache=cache, max_step_tokens=step)
    prompt = IDS[:60]
    output = engine.generate(prompt, temperature=0, max_tokens=20, ignore_eos=True).output_ids
    logits = ours([*prompt, *output])[len(prompt) - 1 : -1]
    top = logits.topk(2).values
    clear = top[:, 0] - top[:, 1] > 1e-3
    assert clear.sum() >= 18
    assert torch.equal(logits.argmax(-1)[clear], torch.tensor(output)[clear])
