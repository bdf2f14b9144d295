"""The forward pass against transformers, the outside oracle, on small models of every supported kind."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse import load_model
from llmcourse.batch import Batch, Chunk
from llmcourse.cache import ContiguousCache
from llmcourse.errors import PromptTooLong
from llmcourse.ops import CPU, REFERENCE
from tests.caches import opened
from tests.tiny_models import KINDS, write_tiny

TINY_LOGITS = 1e-5  # float32, logits of size one, three layers: sums of at most 84 terms in another order


def random_ids(n, vocab_size, seed):
    return torch.randint(0, vocab_size, (n,), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def transformers_logits(theirs, ids, positions=None):
    return theirs(ids[None], position_ids=None if positions is None else positions[None]).logits[0]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_logits_of_every_kind_equal_transformers(kind, seed, tmp_path):
    theirs = write_tiny(tmp_path, kind, seed)
    ours = load_model(tmp_path, device="cpu", dtype="float32")
    ids = random_ids(53, ours.config.vocab_size, seed)
    wanted = transformers_logits(theirs, ids)
    for parts in (REFERENCE, CPU):
        torch.testing.assert_close(ours(ids, parts), wanted, rtol=0, atol=TINY_LOGITS)


@pytest.mark.parametrize("kind", ["llama-gqa", "llama3-rope", "linear-rope", "qwen3"])
@pytest.mark.parametrize("start", [500, 4_000, 7_950])
def test_logits_at_late_positions_equal_transformers(kind, start, tmp_path):
    """The same text, moved: only distances should matter, and ours must round the angles as transformers does."""
    theirs = write_tiny(tmp_path, kind, seed=5)
    ours = load_model(tmp_path, device="cpu", dtype="float32")
    ids = random_ids(41, ours.config.vocab_size, 9)
    wanted = transformers_logits(theirs, ids, torch.arange(start, start + 41))
    batch = replace(Batch.of([Chunk(ids.tolist(), n_sample=41)]), positions=torch.arange(start, start + 41))
    cache = ContiguousCache(ours.config, torch.float32, "cpu")
    opened(cache, 41)
    torch.testing.assert_close(ours.forward(batch, cache, CPU), wanted, rtol=0, atol=TINY_LOGITS)


def test_logits_of_a_context_of_8000_tokens_equal_transformers(tmp_path):
    """Sums over 8,000 keys: bound 1e-5 as for the short ones, since softmax weights add to one."""
    theirs = write_tiny(tmp_path, "llama-gqa", seed=3, num_hidden_layers=1)
    ours = load_model(tmp_path, device="cpu", dtype="float32")
    ids = random_ids(8_000, ours.config.vocab_size, 4)
    torch.testing.assert_close(ours(ids)[-64:], transformers_logits(theirs, ids)[-64:], rtol=0, atol=TINY_LOGITS)


@pytest.mark.parametrize(
    "change", [dict(rms_eps=1e-2), dict(rope_theta=9_000.0), dict(n_kv_heads=1), dict(rope_scaling=None)], ids=str
)
def test_the_comparison_notices_one_wrong_number(change, tmp_path):
    """The negative control: a config value off, and the difference exceeds the bound a hundred times."""
    from llmcourse.model.llama import Llama

    theirs = write_tiny(tmp_path, "llama3-rope", seed=0)
    ours = load_model(tmp_path, device="cpu", dtype="float32")
    ids = random_ids(900, ours.config.vocab_size, 0)
    weights = ours.weights
    if "n_kv_heads" in change:
        D = ours.config.head_dim
        layers = [replace(layer, k=layer.k[:D], v=layer.v[:D]) for layer in weights.layers]
        weights = replace(weights, layers=layers)
    wrong = Llama(replace(ours.config, **change), weights)
    assert (wrong(ids) - transformers_logits(theirs, ids)).abs().max() > 100 * TINY_LOGITS


def test_packed_weights_are_shared_and_leave_the_plain_weights(tmp_path):
    write_tiny(tmp_path, "llama-bias", seed=0)
    ours = load_model(tmp_path, device="cpu", dtype="float32")
    reordered = ours.reordered(CPU.reorder)
    assert ours.reordered(CPU.reorder) is reordered and ours.reordered(REFERENCE.reorder) is ours
    assert isinstance(ours.weights.layers[0].q, torch.Tensor)
    batch = Batch.of([Chunk(range(17), n_sample=17)])
    logits = []
    for model in (ours, reordered):
        cache = ContiguousCache(ours.config, torch.float32, "cpu")
        opened(cache, 17)
        logits.append(model.forward(batch, cache, CPU))
    torch.testing.assert_close(logits[0], logits[1], rtol=0, atol=TINY_LOGITS)


def test_more_tokens_than_the_context_are_refused(tmp_path):
    write_tiny(tmp_path, "llama", max_position_embeddings=16)
    ours = load_model(tmp_path, device="cpu", dtype="float32")
    with pytest.raises(PromptTooLong, match="17 tokens do not fit into the context"):
        ours([1] * 17)
    assert ours([1] * 16).shape == (16, ours.config.vocab_size)
