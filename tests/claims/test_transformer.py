"""The statements of lesson 04. Oracle for the measured perplexity: transformers on the same weights."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import AutoModelForCausalLM

from llmcourse.claims import CORRECTED, FAILS, HOLDS, claims, transformer
from llmcourse.claims.common import english


@pytest.mark.parametrize("n_matrices, two_layers, verdict", [(3, 900.0, CORRECTED), (3, 17.0, HOLDS), (2, 900.0, HOLDS)])
def test_the_third_matrix_counts_only_where_it_is_needed(n_matrices, two_layers, verdict):
    assert transformer.judge_matrices("", n_matrices, whole=15.0, two_layers=two_layers).verdict == verdict


@pytest.mark.parametrize("hits, agree, verdict", [
    ({0: 0.1, 1: 0.4, 2: 0.2}, True, HOLDS), ({0: 0.1, 1: 0.4, 2: 0.2}, False, FAILS), ({0: 0.5, 1: 0.4}, True, FAILS),
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


def test_the_perplexity_is_transformers(tokenizer, default_folder):
    ids = tokenizer.encode(english())[: transformer.PAGE]
    theirs = AutoModelForCausalLM.from_pretrained(default_folder).float()
    with torch.inference_mode():
        want = math.exp(theirs(torch.tensor([ids]), labels=torch.tensor([ids])).loss)
    assert transformer.perplexity() == pytest.approx(want, rel=1e-4)
