"""Lab 07's reference against outside oracles: transformers' own cache, its greedy generation, and bytes that it holds."""

from __future__ import annotations

import inspect

import pytest
import torch
import transformers
from tests.random_model import TINY, random_model
from tests.tiny_models import write_tiny

from llmcourse import given, load_model
from llmcourse.checks.kv_cache_inputs import TinyModel, keys_and_values
from llmcourse.checks.rng import Rng
from llmcourse.workbook.step_model import StepModel

SPLITS = [(6,), (1, 5), (2, 4), (5, 1), (1, 1, 1, 1, 1, 1), (3, 1, 2)]
N_NEW = 9


@pytest.fixture(scope="module")
def lab():
    """The lab's own solutions."""
    return given.answer("07")


def both(lab):
    """The two caches, for two layers, two heads of size five and six tokens."""
    return {"ConcatCache": lab.ConcatCache(2), "PreallocatedCache": lab.PreallocatedCache(2, 2, 5, 6)}


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("name", ["ConcatCache", "PreallocatedCache"])
def test_a_cache_returns_what_transformers_dynamic_cache_returns(lab, name, split):
    """Exact: nothing is computed. transformers keeps [batch, heads, tokens, size]."""
    ours, theirs = both(lab)[name], transformers.DynamicCache()
    for k, v in keys_and_values(Rng(4, "oracle"), *split):
        for layer in (0, 1):
            K, V = ours.update(layer, k + layer, v - layer)
            want = theirs.update((k + layer).transpose(0, 1)[None], (v - layer).transpose(0, 1)[None], layer)
            assert torch.equal(K, want[0][0].transpose(0, 1)) and torch.equal(V, want[1][0].transpose(0, 1))


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_the_two_caches_agree_and_one_of_them_never_moves(lab, split):
    joined, written = both(lab).values()
    places = set()
    for k, v in keys_and_values(Rng(5, "agree"), *split):
        got, want = written.update(1, k, v), joined.update(1, k, v)
        assert all(torch.equal(*pair) for pair in zip(got, want))
        places.add(got[0].data_ptr())
    assert len(places) == 1


@pytest.mark.parametrize("kind", ["llama-gqa", "llama", "qwen3"])
@pytest.mark.parametrize("cache", ["ConcatCache", "PreallocatedCache"])
def test_greedy_ids_are_those_of_transformers_generate(lab, kind, cache, tmp_path):
    theirs = write_tiny(tmp_path, kind, seed=3)
    make = lab.PreallocatedCache if cache == "PreallocatedCache" else lambda L, Hkv, D, capacity: lab.ConcatCache(L)
    model = StepModel(load_model(tmp_path, device="cpu", dtype="float32"), make)
    ids = [11, 7, 190, 23, 5, 66]
    want = theirs.generate(torch.tensor([ids]), max_new_tokens=N_NEW, do_sample=False, eos_token_id=-1, pad_token_id=0)
    assert lab.generate_cached(model, ids, N_NEW) == want[0, len(ids) :].tolist()
    assert model.fed == [len(ids)] + [1] * (N_NEW - 1)


def test_every_cut_of_a_text_is_continued_as_without_a_cache(lab):
    """Oracle: the whole text through the model anew for each id. The model in float64, ids exact, every cut tried."""
    model = random_model()
    text = [96, 3, 50, 12, 41]
    while len(text) < 30:
        text.append(int(model(text)[-1].argmax()))
    for cut in range(5, len(text)):
        assert lab.generate_cached(StepModel(model, lab.PreallocatedCache), text[:cut], len(text) - cut) == text[cut:]
    assert len(set(text)) > 10


def test_the_formula_counts_what_transformers_holds_after_a_prompt(lab, tmp_path):
    theirs = write_tiny(tmp_path, "llama-gqa")
    config = load_model(tmp_path, device="cpu", dtype="float32").config
    kept = theirs(torch.tensor([[1, 2, 3, 4, 5, 6, 7]]), use_cache=True).past_key_values
    if hasattr(kept, "layers"):
        tensors = [each for layer in kept.layers for each in (layer.keys, layer.values)]
    else:  # transformers 4
        tensors = [*kept.key_cache, *kept.value_cache]
    assert lab.kv_bytes_per_token(config, 4) * 7 == sum(each.nbytes for each in tensors)


def test_the_probes_model_says_something_and_depends_on_positions():
    """Else wrong positions would pass: over 20 seeds the texts vary, and positions that start again change nearly all."""
    changed, distinct = 0, []
    for seed in range(20):
        model, ids = TinyModel(Rng(seed, "tiny")), [3, 17, 8, 25]
        text = model.greedy(ids, 12)
        cache, new, pending = model.new_cache(16), [], ids
        while len(new) < 12:
            new.append(int(model(pending, range(len(pending)), cache).argmax()))
            pending = new[-1:]
        changed += new != text[4:]
        distinct.append(len(set(text[4:])))
    assert changed >= 19 and sum(distinct) / 20 > 5


def test_the_probes_model_has_the_methods_of_the_real_one():
    for name in ("new_cache", "__call__"):
        tiny, real = (list(inspect.signature(getattr(each, name)).parameters) for each in (TinyModel, StepModel))
        assert tiny == real


def test_a_step_without_a_position_for_each_token_is_refused():
    model = StepModel(random_model(), lambda *sizes: None)
    with pytest.raises(ValueError, match="3 ids and 1 positions"):
        model([1, 2, 3], [0], None)
    assert TINY.n_layers == 3 and model.fed == []
