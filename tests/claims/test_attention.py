"""The statements of lesson 03. Oracle for the measured perplexity: transformers on the same weights."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import AutoModelForCausalLM

from llmcourse.claims import CORRECTED, FAILS, HOLDS, attention, claims


def test_the_verdict_follows_the_better_prediction():
    assert attention.judge("", by_head=17.0, by_width=130.0).verdict == CORRECTED
    assert attention.judge("", by_head=130.0, by_width=17.0).verdict == HOLDS


@pytest.mark.parametrize("by_head, by_width", [(40.0, 40.0), (40.0, 44.0), (44.0, 40.0), (float("nan"), float("nan"))])
def test_a_model_for_which_the_root_does_not_matter_decides_nothing(by_head, by_width):
    """Planted: a model whose prediction is a constant has the same perplexity with any root."""
    assert attention.judge("", by_head, by_width).verdict == FAILS


def test_c07_is_measured_and_corrected():
    found = claims(["c07"])[0].check().found
    assert found.verdict == CORRECTED and "√64" in found.measured and "√576" in found.measured and "head size" in found.why


def test_the_perplexity_with_the_models_own_scale_is_transformers(tokenizer, default_folder):
    ids = tokenizer.encode("The keys to the old house were on the table, but nobody could find the door.")
    theirs = AutoModelForCausalLM.from_pretrained(default_folder).float()
    with torch.inference_mode():
        want = math.exp(theirs(torch.tensor([ids]), labels=torch.tensor([ids])).loss)
    assert attention.perplexity(ids, 64) == pytest.approx(want, rel=1e-4)
