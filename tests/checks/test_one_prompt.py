"""Lab 00's reference against an outside oracle: transformers' own greedy generation on a tiny random model, exact ids."""

from __future__ import annotations

import pytest
import torch

from llmcourse import given
from tests.tiny_models import write_tiny

MARGIN = 1e-4  # a smaller lead of the best logit may be decided by rounding


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A Llama with random weights, as transformers runs it."""
    return write_tiny(tmp_path_factory.mktemp("tiny"), "llama-gqa", seed=3)


def logits_of(model):
    """The model as lab 00's black box: ids [T] → scores [V]; notes the smallest lead of a best score."""
    leads = []

    @torch.inference_mode()
    def next_logits(ids):
        scores = model(torch.tensor([ids])).logits[0, -1]
        best, second = scores.topk(2).values.tolist()
        leads.append(best - second)
        return scores.tolist()

    return next_logits, leads


def oracle(model, prompt, max_new, stop_ids):
    """The new ids of transformers' `generate`, greedy."""
    got = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), do_sample=False,
                         max_new_tokens=max_new, eos_token_id=sorted(stop_ids) or None, pad_token_id=0)
    return got[0, len(prompt):].tolist()


@pytest.mark.parametrize("prompt", [[7], [3, 141, 59, 26], list(range(20, 45))])
def test_the_reference_loop_gives_the_ids_of_transformers_greedy_generation(tiny, prompt):
    next_logits, leads = logits_of(tiny)
    got = given.answer("00").generate_loop(next_logits, prompt, 12, set())
    assert min(leads) > MARGIN, "two scores are too close to compare: take another seed"
    assert got == oracle(tiny, prompt, 12, set()) and len(set(got)) > 1


def test_the_reference_loop_stops_where_transformers_stops(tiny):
    next_logits, _ = logits_of(tiny)
    free = given.answer("00").generate_loop(next_logits, [3, 141, 59, 26], 12, set())
    stop_ids = {free[5], 196}
    stopped = given.answer("00").generate_loop(next_logits, [3, 141, 59, 26], 12, stop_ids)
    assert stopped == oracle(tiny, [3, 141, 59, 26], 12, stop_ids)
    assert stopped == free[: free.index(free[5]) + 1]
