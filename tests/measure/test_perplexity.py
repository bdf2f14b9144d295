"""Perplexity: the protocol does what it says. Oracle: transformers on the same ids, window by window, by its own loss."""

from __future__ import annotations

import math

import pytest
import torch

from llmcourse import load_model
from llmcourse.errors import PromptTooLong
from llmcourse.measure.perplexity import Protocol, perplexity
from llmcourse.ops import REFERENCE
from tests.random_model import TINY, random_model
from tests.tiny_models import write_tiny

IDS = torch.randint(0, TINY.vocab_size, (200,), generator=torch.Generator().manual_seed(8)).tolist()


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A tiny model as transformers has it, and as we load it."""
    folder = tmp_path_factory.mktemp("tiny")
    return write_tiny(folder, "llama-gqa"), load_model(folder, device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def tiny():
    return random_model()


@torch.no_grad()
def transformers_nll(theirs, ids, start, stop, bos, labels_from):
    """Mean loss and number of scored tokens of one window; labels before `labels_from` (a token of the text) are ignored."""
    read = torch.tensor([([1] if bos else []) + ids[start:stop]])
    labels = read.clone()
    labels[0, : labels_from - start + bos] = -100
    return theirs(read, labels=labels).loss.item(), int((labels[0, 1:] != -100).sum())


@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize(
    "window, stride, skip", [(64, 64, 0), (64, 16, 0), (50, 49, 0), (64, 64, 9), (40, 7, 21), (300, 300, 0)]
)
def test_nll_equals_transformers_under_the_same_protocol(both, window, stride, skip, bos):
    """Float32: a mean of losses of size five; bound 1e-5."""
    theirs, ours = both
    got = perplexity(ours, IDS, Protocol(window, stride, bos, skip))
    total, n, done = 0.0, 0, 0
    for start in range(0, len(IDS), stride):
        stop = min(start + window, len(IDS))
        first = max(done, start + max(skip, 0 if bos else 1))
        if first < stop:
            loss, scored = transformers_nll(theirs, IDS, start, stop, bos, first)
            total, n = total + loss * scored, n + scored
        done = stop
        if stop == len(IDS):
            break
    assert len(got.nll) == n
    assert got.nll.mean().item() == pytest.approx(total / n, abs=1e-5)
    assert got.value == pytest.approx(math.exp(total / n), rel=2e-5)


def test_every_token_is_scored_once_and_knows_its_context(tiny):
    got = perplexity(tiny, IDS, Protocol(window=60, stride=20))
    assert got.tokens.tolist() == list(range(1, 200))
    assert got.context[:59].tolist() == list(range(1, 60)) and set(got.context[59:].tolist()) == set(range(40, 60))
    without_overlap = perplexity(tiny, IDS, Protocol(window=50, stride=50))
    assert without_overlap.tokens.tolist() == [i for i in range(200) if i % 50]


@pytest.mark.parametrize("spec", ["contiguous", "none", "int8", "int4:channel/8", "window:9+2"])
def test_the_size_of_the_steps_changes_nothing(tiny, spec):
    """Float64, 1e-12; without a cache a window is one step, whatever was asked for."""
    protocol = Protocol(window=60, stride=60)
    whole = perplexity(tiny, IDS, protocol, cache=spec)
    for step_tokens in (1, 7, 59):
        got = perplexity(tiny, IDS, protocol, cache=spec, step_tokens=step_tokens, parts=REFERENCE)
        torch.testing.assert_close(got.nll, whole.nll, rtol=0, atol=1e-12)


def test_a_cache_that_keeps_everything_scores_like_none_and_a_short_window_does_not(tiny):
    specs = ("none", "contiguous", "window:60", "window:3")
    scores = {spec: perplexity(tiny, IDS, Protocol(60, 60), cache=spec) for spec in specs}
    for spec in ("contiguous", "window:60"):
        torch.testing.assert_close(scores[spec].nll, scores["none"].nll, rtol=0, atol=1e-12)
    assert (scores["window:3"].nll - scores["none"].nll).abs().mean() > 0.1


def test_one_token_with_a_bos_can_be_scored(both):
    assert len(perplexity(both[1], IDS[:1], Protocol(bos=True)).nll) == 1


def test_a_text_that_scores_nothing_is_an_error(tiny):
    for ids in ([], [5]):
        with pytest.raises(ValueError, match="scores none"):
            perplexity(tiny, ids)


def test_bos_without_a_bos_id_and_a_window_beyond_the_context_are_errors(tiny):
    with pytest.raises(ValueError, match="tiny has no BOS"):
        perplexity(tiny, IDS, Protocol(60, 60, bos=True))
    with pytest.raises(PromptTooLong, match="context of tiny, 64 tokens"):
        perplexity(tiny, IDS, Protocol(65, 65))


@pytest.mark.parametrize(
    "settings", [dict(window=0, stride=0), dict(window=5, stride=6), dict(stride=0), dict(skip=1024), dict(skip=-1)]
)
def test_a_protocol_that_makes_no_sense_is_refused(settings):
    with pytest.raises(ValueError, match="1 ≤ stride ≤ window"):
        Protocol(**settings)


def test_the_words_name_the_protocol(tiny):
    said = str(perplexity(tiny, IDS, Protocol(60, 30, skip=2)))
    assert "window 60, stride 30, no BOS, 2 skipped" in said and "198 tokens" in said
