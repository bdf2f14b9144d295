"""`watch_attention` records what the engine's attention sees. Oracles: transformers' attentions, the plain forward pass."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM

from llmcourse.workbook.attention_maps import watch_attention

TEXT = "The keys to the old house were on the table."


@pytest.fixture(scope="module")
def ids(tokenizer):
    return tokenizer.encode(TEXT)


def test_weights_are_transformers_attentions(model, ids, default_folder):
    """Float32 on both sides: within 1e-4 in a weight, and the shapes are [L, Hq, n, n]."""
    theirs = AutoModelForCausalLM.from_pretrained(default_folder, attn_implementation="eager").float()
    with torch.inference_mode():
        attentions = theirs(torch.tensor([ids]), output_attentions=True).attentions
    ours = watch_attention(model, ids).weights()
    assert ours.shape == (30, 9, len(ids), len(ids))
    torch.testing.assert_close(ours, torch.cat(attentions), rtol=0, atol=1e-4)


def test_watching_changes_nothing(model, ids):
    assert torch.equal(watch_attention(model, ids).logits, model(ids))


def test_what_is_recorded_fits_together(model, ids):
    """The weights, applied to the recorded values, give the recorded output, within 1e-5."""
    seen = watch_attention(model, ids)
    mixed = torch.einsum("lhqk,lkhd->lqhd", seen.weights(), seen.v.repeat_interleave(3, dim=2))
    torch.testing.assert_close(mixed, seen.out, rtol=1e-4, atol=1e-5)


def test_rows_add_up_to_one_and_nobody_sees_the_future(model, ids):
    weights = watch_attention(model, ids).weights()
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert (weights.triu(1) == 0).all()


def test_another_scale_changes_the_weights_and_the_logits(model, ids):
    own, flat = watch_attention(model, ids), watch_attention(model, ids, scale=1e-6)
    assert (flat.weights(1e-6)[0, 0, -1] - 1 / len(ids)).abs().max() < 1e-3
    assert (own.logits - flat.logits).abs().max() > 1
