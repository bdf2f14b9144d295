"""Named wrong answers of lab 03."""

from __future__ import annotations

import math

import torch

from llmcourse.checks import edited, wrong

# ---- softmax ----


@wrong("softmax", says="subtract the row's largest score first")
def unstable_softmax(x):
    """It takes exp of the scores as they are, and exp overflows beyond 88."""
    powers = torch.exp(x)
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-30)


@wrong("softmax", says="Rows lie along the last axis")
def over_the_wrong_axis(x):
    """It goes along the first axis, so that columns add up to 1 instead of rows."""
    powers = torch.exp(x - x.amax(0, keepdim=True).nan_to_num(neginf=0.0))
    return powers / powers.sum(0, keepdim=True).clamp(min=1.0)


edited("softmax", "nan_where_nothing_is_seen", old="    top = top.masked_fill(top == -math.inf, 0.0)\n", new="",
       says="gives zeros, not NaN", why="In a row of -inf it subtracts -inf from -inf, and that is NaN.")

edited("softmax", "one_maximum_for_all_rows", old="x.amax(-1, keepdim=True)", new="x.amax()",
       says="each row's own maximum", why="It subtracts one maximum from all rows, and those far below it become 0 / 0.")

edited("softmax", "adds_a_little", old=".clamp(min=1.0)", new=" + 1e-3",
       says="divide by the sum", why="It adds a little to the sum, so that the weights of a row do not add up to 1.")


@wrong("softmax", says="work on a tensor of your own")
def writes_into_its_input(x):
    """It subtracts in place, so that the caller's scores change."""
    top = x.amax(-1, keepdim=True)
    x -= top.masked_fill(top == -math.inf, 0.0)
    powers = torch.exp(x)
    return powers / powers.sum(-1, keepdim=True).clamp(min=1.0)


# ---- causal_mask ----

edited("causal_mask", "aligned_to_key_0", old="torch.arange(n_key - n_query, n_key)", new="torch.arange(n_query)",
       says="The queries are the last n_query positions",
       why="It counts the queries from key 0, as PyTorch's is_causal does: right for a whole prompt, wrong with a past.")

edited("causal_mask", "does_not_see_itself", old="<= positions", new="< positions",
       says="It may see itself", why="It hides a token from itself; the first token would see nothing at all.")

edited("causal_mask", "sees_one_too_many", old="<= positions[:, None]", new="<= positions[:, None] + 1",
       says="and what came before", why="Its queries see one key too many: the token that they are to predict.")

edited("causal_mask", "true_means_hidden", old="torch.arange(n_key) <= positions", new="torch.arange(n_key) > positions",
       says="True means that query i may see", why="It says True where a key is hidden; here True means visible.")

edited("causal_mask", "looks_into_the_future",
       old="torch.arange(n_key) <= positions", new="torch.arange(n_key) >= positions",
       says="what came before", why="Its queries see what comes after them, and nothing before.")

edited("causal_mask", "accepts_too_many_queries", old="    if n_query > n_key:\n", new="    if False:\n",
       says="raise ValueError", why="It gives a mask for more queries than keys, in which some queries see nothing.")

# ---- attention ----

edited("attention", "no_scale_in_one_head", old="q @ k.T * scale", new="q @ k.T",
       says="multiplied by the scale that is given", why="It does not multiply the scores by scale.")

edited("attention", "scale_of_its_own", old="q @ k.T * scale", new="q @ k.T / math.sqrt(q.shape[-1])",
       says="do not choose your own", why="It divides by √D, whatever scale it was given.")

edited("attention", "divides_by_scale", old="q @ k.T * scale", new="q @ k.T / scale",
       says="multiplied by the scale", why="It divides the scores by scale; scale is 1/√D already, so multiply.")


@wrong("attention", says="before softmax")
def mask_after_softmax(q, k, v, mask, scale):
    """It hides keys after softmax, so that the weights of what is left no longer add up to 1."""
    return ((q @ k.T * scale).softmax(-1) * mask) @ v


@wrong("attention", says="take it out before softmax, not after")
def mask_after_softmax_made_up_for(q, k, v, mask, scale):
    """It hides keys after softmax and divides again; next to a loud hidden key the visible ones have sunk to 0 by then."""
    weights = (q @ k.T * scale).softmax(-1) * mask
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total > 0, total, torch.ones_like(total)) @ v


@wrong("attention", says="Softmax goes along the keys")
def softmax_over_the_queries(q, k, v, mask, scale):
    """It takes softmax along the queries, not along the keys: every key hands out its weight among those who ask."""
    scores = (q @ k.T * scale).masked_fill(~mask, -1e30)
    return scores.softmax(0) @ v


@wrong("attention", says="becomes -inf before softmax")
def hidden_scores_become_zero(q, k, v, mask, scale):
    """It sets hidden scores to 0, and exp(0) is 1: hidden keys still get weight."""
    return ((q @ k.T * scale) * mask).softmax(-1) @ v


@wrong("attention", says="subtract each row's maximum")
def unstable_attention(q, k, v, mask, scale):
    """It takes exp of the scores as they are, and exp overflows beyond 88."""
    powers = torch.exp(q @ k.T * scale) * mask
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-30) @ v


@wrong("attention", says="gets zeros, not NaN")
def nan_for_a_blind_query(q, k, v, mask, scale):
    """It uses PyTorch's softmax, which makes NaN of a row in which nothing may be seen. Yours makes zeros."""
    return (q @ k.T * scale).masked_fill(~mask, -math.inf).softmax(-1) @ v


@wrong("attention", says="not a mean of what is hidden")
def a_large_number_for_infinity(q, k, v, mask, scale):
    """It hides with a large negative number, so that a query that sees nothing gets the mean of all it may not see."""
    return (q @ k.T * scale).masked_fill(~mask, -1e30).softmax(-1) @ v


@wrong("attention", says="Hide with -inf")
def gpt2s_number_for_infinity(q, k, v, mask, scale):
    """It hides with -10,000, as GPT-2's first code did; visible scores below that lose to hidden ones."""
    return ((q @ k.T * scale).masked_fill(~mask, -1e4).softmax(-1) * mask) @ v


# ---- grouped_attention ----

edited("grouped_attention", "scale_by_the_width", old="1 / math.sqrt(head_size)", new="1 / math.sqrt(n_heads * head_size)",
       says="not by the width of the model",
       why="It divides by the root of the model's width, Hq · D; each head has only D numbers, so divide by √D.")

edited("grouped_attention", "no_scale_in_all_heads", old="1 / math.sqrt(head_size)", new="1.0",
       says="Scale by 1/√D", why="It does not scale the scores.")

edited("grouped_attention", "scale_without_root", old="1 / math.sqrt(head_size)", new="1 / head_size",
       says="Scale by 1/√D", why="It divides by D; the scores grow with the root of D only.")


@wrong("grouped_attention", says="neighbours share")
def repeat_instead_of_interleave(q, k, v, n_past):
    """It repeats the key/value heads as 0 1 0 1 (`repeat`); neighbours share, 0 0 1 1 (`repeat_interleave`)."""
    return _grouped(q, k, v, n_past, lambda x, group: x.repeat(1, group, 1))


@wrong("grouped_attention", says="not only key 0")
def mask_aligned_to_key_0(q, k, v, n_past):
    """It counts the queries from key 0, as PyTorch's is_causal does: a new token with a past then sees key 0 only."""
    return _grouped(q, k, v, n_past, offset=0)


@wrong("grouped_attention", says="position n_past + i")
def one_short_with_a_past(q, k, v, n_past):
    """With a past it is off by one: a new token does not see itself."""
    return _grouped(q, k, v, n_past, offset=max(n_past - 1, 0))


@wrong("grouped_attention", says="hide what comes later")
def one_too_many(q, k, v, n_past):
    """Its mask is off by one: every query also sees the token after it."""
    return _grouped(q, k, v, n_past, offset=n_past + 1)


@wrong("grouped_attention", says="hide what comes later")
def no_mask(q, k, v, n_past):
    """It hides nothing: tokens of a prompt look into their future."""
    return _grouped(q, k, v, n_past, offset=len(k))


@wrong("grouped_attention", says="result [n, Hq, D]")
def heads_first(q, k, v, n_past):
    """It returns [Hq, n, D]; tokens come first, heads second."""
    return _grouped(q, k, v, n_past).transpose(0, 1)


@wrong("grouped_attention", says="softmax that subtracts the maximum")
def overflows(q, k, v, n_past):
    """It takes exp of the scores as they are, and exp overflows beyond 88."""
    return _grouped(q, k, v, n_past, softmax=lambda scores: scores.exp() / scores.exp().sum(-1, keepdim=True))


@wrong("grouped_attention", says="along the keys")
def softmax_over_the_heads(q, k, v, n_past):
    """It takes softmax along the heads; each head's weights must add up to 1 along the keys."""
    return _grouped(q, k, v, n_past, softmax=lambda scores: scores.clamp(min=-1e30).softmax(0))


def _grouped(q, k, v, n_past, repeat=lambda x, group: x.repeat_interleave(group, 1), offset=None,
             softmax=lambda scores: scores.softmax(-1)):
    """Attention in all heads, with one of its decisions exchanged."""
    group, offset = q.shape[1] // k.shape[1], n_past if offset is None else offset
    scores = torch.einsum("nhd,thd->hnt", q, repeat(k, group)) / math.sqrt(q.shape[-1])
    seen = torch.arange(len(k)) <= torch.arange(len(q))[:, None] + offset
    weights = softmax(scores.masked_fill(~seen, -math.inf))
    return torch.einsum("hnt,thd->nhd", weights, repeat(v, group))


# ---- online_attention ----

edited("online_attention", "does_not_shrink_the_mix", old="mix = mix * shrink + powers", new="mix = mix + powers",
       says="shrink sum and mix", why="When the maximum rises it shrinks the sum, but not the mix of values.")

edited("online_attention", "does_not_shrink_the_sum", old="total = total * shrink + powers", new="total = total + powers",
       says="shrink sum and mix", why="When the maximum rises it shrinks the mix of values, but not the sum.")

edited("online_attention", "shrinks_the_wrong_way", old="torch.exp(top - new_top)", new="torch.exp(new_top - top)",
       says="exp(old max - new max)", why="It takes exp(new max - old max), which makes what it has larger.")

edited("online_attention", "no_scale_online", old=" / math.sqrt(q.shape[1])", new="",
       says="q·k/√D", why="It does not divide the scores by √D.")

edited("online_attention", "last_blocks_maximum", old="torch.maximum(top, scores.amax(-1, keepdim=True))",
       new="scores.amax(-1, keepdim=True)",
       says="not the last block's", why="It takes the last block's maximum for the largest so far, and after a larger "
       "one exp overflows.")

edited("online_attention", "starts_at_zero", old="-math.inf", new="0.0",
       says="starts at -inf, not at 0",
       why="Its maximum starts at 0; where all scores are far below, all their powers are 0.")

edited("online_attention", "drops_the_rest", old="range(0, len(k), block)", new="range(0, len(k) - len(k) % block, block)",
       says="the last block is shorter", why="It drops the keys of the last block when that is shorter.")

edited("online_attention", "one_maximum_for_all_online", old="scores.amax(-1, keepdim=True)", new="scores.amax()",
       says="Every query has its own maximum", why="It keeps one maximum for all queries, and those far below it vanish.")


@wrong("online_attention", says="never of a score alone")
def without_a_maximum(q, k, v, block):
    """It does without a running maximum: sooner or later a score is too large for it, and exp overflows beyond 88."""
    total, mix = 0.0, 0.0
    for start in range(0, len(k), block):
        powers = torch.exp(q @ k[start : start + block].T / math.sqrt(q.shape[1]))
        total, mix = total + powers.sum(-1, keepdim=True), mix + powers @ v[start : start + block]
    return mix / total


@wrong("online_attention", says="must not grow with T")
def the_whole_matrix(q, k, v, block):
    """It makes the whole matrix of scores, which is what this exercise avoids."""
    scores = q @ k.T / math.sqrt(q.shape[1])
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    return powers / powers.sum(-1, keepdim=True) @ v


@wrong("online_attention", says="no list and no matrix of scores")
def a_list_of_blocks(q, k, v, block):
    """It keeps the scores of all blocks in a list: together they are the whole matrix."""
    scores = [q @ k[start : start + block].T / math.sqrt(q.shape[1]) for start in range(0, len(k), block)]
    top = torch.stack([one.amax(-1) for one in scores]).amax(0)[:, None]
    powers = [torch.exp(one - top) for one in scores]
    mix = sum(one @ v[i * block : (i + 1) * block] for i, one in enumerate(powers))
    return mix / sum(one.sum(-1, keepdim=True) for one in powers)


@wrong("online_attention", says="must not grow with T")
def one_query_at_a_time(q, k, v, block):
    """It goes query by query, but each one still has a row of scores as long as the text."""
    rows = []
    for one in q:
        scores = k @ one / math.sqrt(q.shape[1])
        powers = torch.exp(scores - scores.amax())
        rows.append(powers / powers.sum() @ v)
    return torch.stack(rows)


@wrong("online_attention", says="shrink sum and mix")
def mean_of_the_blocks(q, k, v, block):
    """It does attention in each block and takes the mean; blocks with large scores must count for more."""
    starts = range(0, len(k), block)
    mix = 0.0
    for start in starts:
        scores = q @ k[start : start + block].T / math.sqrt(q.shape[1])
        powers = torch.exp(scores - scores.amax(-1, keepdim=True))
        mix = mix + powers / powers.sum(-1, keepdim=True) @ v[start : start + block]
    return mix / len(starts)


@wrong("online_attention", says="Do not find the maximum beforehand")
def two_passes(q, k, v, block):
    """It goes through the keys twice, first for the maximum; all scores are computed two times, and nothing is online."""
    scores = [lambda at=start: q @ k[at : at + block].T / math.sqrt(q.shape[1]) for start in range(0, len(k), block)]
    top, total, mix = torch.full((len(q), 1), -math.inf), 0.0, 0.0
    for one in scores:
        top = torch.maximum(top, one().amax(-1, keepdim=True))
    for i, one in enumerate(scores):
        powers = torch.exp(one() - top)
        total, mix = total + powers.sum(-1, keepdim=True), mix + powers @ v[i * block : (i + 1) * block]
    return mix / total


edited("attention", "hides_what_may_be_seen", old="masked_fill(~mask", new="masked_fill(mask", says="True means",
       why="It hides where the mask is True. True means that the query may see the key; masked_fill fills where its mask is "
           "True, so it wants ~mask.")


@wrong("attention", says="True means")
def hides_what_may_be_seen_and_gives_nan(q, k, v, mask, scale):
    """It hides where the mask is True. True means that the query may see the key: fill where ~mask."""
    return (q @ k.T * scale).masked_fill(mask, -math.inf).softmax(-1) @ v
