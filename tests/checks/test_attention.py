"""Lab 03's reference against outside oracles: PyTorch's softmax and fused attention, transformers' Llama, the engine.

Everything in float64, where sums in another order differ by less than 1e-12; the real model in float32, within 1e-5.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given as drawn
from hypothesis import strategies as st
from torch.nn.attention.bias import causal_lower_right
from transformers.models.llama import modeling_llama

from llmcourse import checks, given
from llmcourse.checks.attention_inputs import Kept
from llmcourse.checks.rng import Rng
from llmcourse.ops import reference
from llmcourse.workbook.attention_maps import watch_attention
from llmcourse.workbook.examine import examine

EXACT = {"rtol": 0, "atol": 1e-12}
sizes = st.tuples(*[st.integers(1, 6)] * 4, st.integers(0, 9))  # n, key/value heads, heads that share one, D, past


@pytest.fixture(scope="module")
def lab():
    """The lab's own solutions."""
    return given.answer("03")


def numbers(*shape, spread=1.0):
    return spread * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("spread", [1.0, 2000.0])
def test_softmax_is_pytorchs(lab, spread):
    x = numbers(3, 4, 7, spread=spread).masked_fill(numbers(3, 4, 7) > 1.5, -math.inf)
    torch.testing.assert_close(lab.softmax(x), x.softmax(-1), **EXACT)


def test_softmax_of_nothing_is_zero_where_pytorchs_is_nan(lab):
    x = torch.full((2, 3), -math.inf)
    assert x.softmax(-1).isnan().all() and (lab.softmax(x) == 0).all()


@pytest.mark.parametrize("n, T", [(1, 1), (1, 9), (4, 4), (3, 11)])
def test_the_mask_is_pytorchs_causal_mask_for_the_last_queries(lab, n, T):
    hidden = causal_lower_right(n, T)._materialize("cpu")
    want = hidden if hidden.dtype == torch.bool else hidden == 0
    assert torch.equal(lab.causal_mask(n, T), want)


def test_one_head_is_pytorchs_attention_with_a_mask(lab):
    q, k, v = numbers(5, 8), numbers(9, 8), numbers(9, 8).flip(0)
    mask = numbers(5, 9) > 0
    mask[:, 3] = True
    want = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask, scale=0.3)[0]
    torch.testing.assert_close(lab.attention(q, k, v, mask, 0.3), want, **EXACT)


@drawn(sizes)
def test_grouped_attention_is_pytorchs_and_the_engines(shape):
    n, n_kv, group, size, past = shape
    T = n + past
    q, k, v = numbers(n, n_kv * group, size), numbers(T, n_kv, size), numbers(T, n_kv, size + 1)[..., 1:]
    mine = given.answer("03").grouped_attention(q, k, v, past)
    fused = F.scaled_dot_product_attention(*(x.transpose(0, 1)[None] for x in (q, k, v)),
                                           attn_mask=torch.ones(n, T).tril(past) > 0, enable_gqa=True)
    torch.testing.assert_close(mine, fused[0].transpose(0, 1), **EXACT)
    torch.testing.assert_close(mine, reference.grouped_attention(q, k, v, size**-0.5), **EXACT)


def test_heads_share_keys_in_the_order_of_transformers_llama(lab):
    v = numbers(1, 3, 4)
    repeated = modeling_llama.repeat_kv(v.transpose(0, 1)[None], 2)[0].transpose(0, 1)
    assert torch.equal(lab.grouped_attention(numbers(1, 6, 4), v, v, 0), repeated)


@drawn(sizes, st.integers(1, 20))
def test_online_attention_is_pytorchs_in_any_blocks(shape, block):
    n, _, _, size, past = shape
    q, k, v = numbers(n, size, spread=30.0), numbers(n + past, size), numbers(n + past, size + 1)[:, 1:]
    want = F.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    torch.testing.assert_close(given.answer("03").online_attention(q, k, v, block), want, rtol=0, atol=1e-10)


def test_the_real_models_attention_is_the_labs(lab, model, tokenizer):
    seen = watch_attention(model, tokenizer.encode("The keys were on the table, and nobody had opened the door."))
    for q, k, v, out in zip(seen.q, seen.k, seen.v, seen.out):
        torch.testing.assert_close(lab.grouped_attention(q, k, v, 0), out, rtol=1e-4, atol=1e-5)


def test_what_online_attention_keeps_does_not_grow_with_the_text(lab):
    most = []
    for T in (40, 400, 4000):
        q, k, v = numbers(3, 2), numbers(T, 2), numbers(T, 2)
        with Kept(q) as kept:
            lab.online_attention(q, k, v, 4)
        most.append(kept.most)
    assert most[0] == most[1] == most[2] < 100


@pytest.mark.parametrize("made", [
    lambda q, k: q @ k.T,
    lambda q, k: torch.einsum("nd,td->nt", q, k),
    lambda q, k: [q @ one for one in k],
    lambda q, k: torch.stack([k @ one for one in q]),
    lambda q, k: torch.zeros(3, 400).index_copy_(1, torch.arange(400), (k @ q.T).T),
], ids=["product", "einsum", "list", "rows", "written"])
def test_a_whole_matrix_is_noticed_however_it_is_made(made):
    rng = Rng(1, "kept")
    q, k = rng.normal(3, 2), rng.normal(400, 2)
    with Kept(q) as kept:
        made(q, k)
    assert kept.most >= 3 * 400


def test_a_matrix_filled_by_assignment_is_noticed():
    q, k = torch.ones(3, 2), torch.ones(400, 2)
    with Kept(q) as kept:
        scores = torch.zeros(3, 400)
        for i in range(400):
            scores[:, i] = q @ k[i]
    assert kept.most >= 3 * 400


def test_copies_of_the_keys_do_not_count():
    q, k = torch.ones(3, 2), torch.ones(400, 2)
    with Kept(q) as kept:
        k = F.pad(k.T.contiguous().T, (0, 0, 0, 8))
        for start in range(0, 408, 4):
            (q[:, None] * k[None, start : start + 4]).sum(-1)
    assert kept.most < 100



def online_by_broadcasting(q, k, v, block):
    """Written the long way: keys padded and cut beforehand, products by broadcasting, states in new tensors."""
    T = len(k)
    k, v = (F.pad(x, (0, 0, 0, -T % block)) for x in (k, v))
    top, total, mix = torch.full((len(q),), -math.inf), torch.zeros(len(q)), torch.zeros_like(q)
    for i, (keys, values) in enumerate(zip(k.split(block), v.split(block))):
        scores = (q[:, None, :] * keys[None]).sum(-1) * q.shape[-1] ** -0.5
        scores[:, max(T - i * block, 0) :] = -math.inf
        new = torch.stack([top, scores.max(dim=-1).values]).max(dim=0).values
        old, powers = (top - new).exp(), (scores - new.unsqueeze(-1)).exp()
        total = old * total + powers.sum(dim=-1)
        mix = old.unsqueeze(-1) * mix + torch.einsum("nt,td->nd", powers, values)
        top = new
    return mix / total.unsqueeze(-1)


def online_query_by_query(q, k, v, block):
    """A loop over queries around the loop over blocks, with states that are changed in place."""
    out = torch.empty_like(q)
    for i in range(q.shape[0]):
        top, total, mix = q.new_tensor(-math.inf), q.new_tensor(0.0), torch.zeros(v.shape[1])
        for start in range(0, k.shape[0], block):
            scores = torch.mv(k[start : start + block], q[i]) / math.sqrt(q.shape[1])
            new = max(top, scores.max())
            powers = torch.exp(scores - new)
            mix *= torch.exp(top - new)
            mix += powers @ v[start : start + block]
            total = total * torch.exp(top - new) + powers.sum()
            top = new
        out[i] = mix / total
    return out


def grouped_at_once(q, k, v, n_past):
    """All heads in one einsum, with PyTorch's own softmax, which this exercise allows."""
    n, heads, size = q.shape
    k, v = (x.repeat_interleave(heads // x.shape[1], dim=1) for x in (k, v))
    scores = torch.einsum("nhd,thd->nht", q, k) * size**-0.5
    later = torch.ones(n, n_past + n, dtype=torch.bool).triu(n_past + 1)
    return torch.einsum("nht,thd->nhd", torch.softmax(scores.masked_fill(later[:, None], -math.inf), dim=-1), v)


def softmax_by_replacing_nan(x):
    """NaN is made, and then replaced."""
    powers = (x - x.max(dim=-1, keepdim=True).values).exp()
    return torch.nan_to_num(powers / powers.sum(-1, keepdim=True), nan=0.0)


@pytest.mark.parametrize("exercise, written", [
    ("online_attention", online_by_broadcasting), ("online_attention", online_query_by_query),
    ("grouped_attention", grouped_at_once), ("softmax", softmax_by_replacing_nan),
], ids=lambda value: getattr(value, "__name__", value))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_right_answers_get_full_marks(lab, exercise, written, seed):
    lesson = checks.lesson("03")
    got = examine(lesson, exercise, lab.replaced(exercise, written), lab, seed=seed, hidden=True,
                  forbids=given.forbidden(lesson, exercise))
    assert [verdict.as_json() for verdict in got.verdicts if not verdict.ok] == []


@pytest.mark.parametrize("forbidden", [
    "torch.softmax(x, -1)", "x.softmax(-1)", "F.softmax(x, -1)", "torch.nn.Softmax(-1)(x)", "torch.special.softmax(x, -1)",
    "(x - x.logsumexp(-1, True)).exp()",
])
def test_softmax_may_not_be_bought(lab, forbidden):
    assert reasons(lab, "softmax", f"(x): return {forbidden}") == {"forbidden"}


@pytest.mark.parametrize("exercise, call", [
    ("attention", "(q, k, v, mask, scale): return F.scaled_dot_product_attention(q[None], k[None], v[None], mask)[0]"),
    ("online_attention", "(q, k, v, block): return F.scaled_dot_product_attention(q[None], k[None], v[None])[0]"),
    ("online_attention", "(q, k, v, block): return torch.from_numpy(v.numpy())"),
    ("grouped_attention", "(q, k, v, n_past): return reference.grouped_attention(q, k, v, q.shape[-1] ** -0.5)"),
])
def test_attention_may_not_be_bought(lab, exercise, call):
    assert reasons(lab, exercise, call) == {"forbidden"}


def reasons(lab, exercise, source):
    """What an answer with this source is told by the visible probes."""
    namespace = {"torch": torch, "F": F, "reference": reference}
    exec(f"def {exercise}{source}", namespace)
    lesson, answer = checks.lesson("03"), lab.replaced(exercise, namespace[exercise])
    got = examine(lesson, exercise, answer, lab, forbids=given.forbidden(lesson, exercise))
    return {verdict.reason for verdict in got.verdicts}
