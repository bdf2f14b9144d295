"""Probes of lab 03: tokens look at each other."""

from __future__ import annotations

import math

import torch

from llmcourse.checks import exercise, probe, raises

from .attention_inputs import ATTENTION, HINTS, OUT_OF_SIGHT, SOFTMAX, Kept, LateKeys, head, heads, some_mask, whole

exercise("softmax", hints=HINTS["softmax"], forbids=SOFTMAX)
exercise("causal_mask", hints=HINTS["causal_mask"], forbids=ATTENTION)
exercise("attention", hints=HINTS["attention"], forbids=ATTENTION)
exercise("grouped_attention", hints=HINTS["grouped_attention"], forbids=ATTENTION)
exercise("online_attention", hints=HINTS["online_attention"], forbids=(*SOFTMAX, *OUT_OF_SIGHT))

# ---- softmax ----

@probe("softmax", hint="Take exp of every score, and divide by the sum of these.")
def powers_over_their_sum(answer, rng):
    return answer.softmax(rng.normal(7))

@probe("softmax", points=2, hint="Rows lie along the last axis: the maximum and the sum are those of each row, dim=-1.")
def rows_along_the_last_axis(answer, rng):
    return answer.softmax(2 * rng.normal(3, 5, 4))

@probe("softmax", points=2, hint="exp overflows beyond 88: subtract the row's largest score first; the result is the same.")
def large_scores(answer, rng):
    return answer.softmax(1000 + 300 * rng.normal(6))

@probe("softmax", points=2, hint="A row that is -inf throughout gives zeros, not NaN; other rows give -inf the weight 0.")
def nothing_may_be_seen(answer, rng):
    return answer.softmax(torch.cat([rng.normal(2, 5).masked_fill(some_mask(rng, 2, 5), -math.inf),
                                     torch.full((1, 5), -math.inf)]))

@probe("softmax", hidden=True, hint="Subtract each row's own maximum: with a single one for all rows, low rows vanish.")
def rows_at_different_heights(answer, rng):
    return answer.softmax(rng.normal(3, 5) + 900 * torch.tensor(rng.shuffled([-1.0, 0.0, 1.0]))[:, None])

@probe("softmax", hidden=True, hint="Very negative scores make a row like any other: subtract its maximum, not its size.")
def very_negative_scores(answer, rng):
    return answer.softmax(rng.normal(2, 9) - rng.integers(300, 3000))

@probe("softmax", hidden=True, hint="x belongs to the caller: work on a tensor of your own, also where x has -inf.")
def scores_stay_as_they_were(answer, rng):
    x = rng.normal(2, 6).masked_fill(some_mask(rng, 2, 6), -math.inf)
    return [answer.softmax(x), x]

@probe("softmax", hidden=True, rtol=1e-9, atol=1e-12, hint="The result has the precision of x: float64 stays float64.")
def keeps_the_precision(answer, rng):
    return answer.softmax(3 * rng.normal(5, dtype=torch.float64))

# ---- causal_mask ----

@probe("causal_mask", hint="True means that query i may see key j. It may see itself, and what came before.")
def a_whole_text(answer, rng):
    return answer.causal_mask(*[rng.integers(3, 8)] * 2)

@probe("causal_mask", points=2,
       hint="The queries are the last n_query positions: query 0 stands at n_key - n_query and sees all before it.")
def queries_are_the_last_positions(answer, rng):
    n = rng.integers(2, 5)
    return answer.causal_mask(n, n + rng.integers(2, 6))

@probe("causal_mask", hint="A single query is the last token of the text: it sees every key.")
def one_query_sees_every_key(answer, rng):
    return answer.causal_mask(1, rng.integers(3, 12))

@probe("causal_mask", hidden=True, hint="More queries than keys cannot be the last of them: raise ValueError.")
def more_queries_than_keys(answer, rng):
    n = rng.integers(2, 9)
    return [raises(ValueError, answer.causal_mask, n + rng.integers(1, 4), n), answer.causal_mask(n, n)]

@probe("causal_mask", hidden=True, points=2, hint="Row i sees n_key - n_query + i + 1 keys, whatever the sizes.")
def many_sizes(answer, rng):
    sizes = ((1, 0), (7, 1), (2, 30), (rng.integers(5, 90), rng.integers(1, 90)))
    return [answer.causal_mask(n, n + past) for n, past in sizes]

# ---- attention ----

@probe("attention", hint="Equal scores mean equal weights: the result is then the plain mean of the rows of v.")
def one_query_mixes_the_values(answer, rng):
    q, k, v = head(rng, 1, 5, 3)
    return answer.attention(q, 0 * k, v, torch.ones(1, 5, dtype=torch.bool), 0.5)

@probe("attention", points=2,
       hint="The score of query i and key j is their dot product. Softmax goes along the keys, for each query.")
def each_query_weighs_the_keys(answer, rng):
    q, k, v = head(rng, 4, 7, 3)
    return answer.attention(q, k, v, torch.ones(4, 7, dtype=torch.bool), 1.0)

@probe("attention", hint="Every score is multiplied by the scale that is given, before softmax; do not choose your own.")
def scale_as_it_is_given(answer, rng):
    q, k, v = head(rng, 2, 6, 5)
    return answer.attention(q, k, v, torch.ones(2, 6, dtype=torch.bool), rng.uniform(low=1.6, high=2.4))

@probe("attention", points=2,
       hint="Where the mask is False the score becomes -inf before softmax, so that the visible weights add up to 1.")
def the_mask_comes_before_softmax(answer, rng):
    q, k, v = head(rng, 5, 8, 4)
    return answer.attention(q, k, v, some_mask(rng, 5, 8), 1.0)

@probe("attention", hint="Scores may be in the thousands: softmax must subtract each row's maximum.")
def scores_in_the_thousands(answer, rng):
    q, k, v = whole(rng, 900, 3, 4), whole(rng, 5, 6, 4), rng.normal(6, 4)
    return answer.attention(q, k, v, some_mask(rng, 3, 6), 0.5)

@probe("attention", hidden=True, points=2,
       hint="A hidden key has no influence, however large its score: take it out before softmax, not after.")
def a_hidden_key_has_no_influence(answer, rng):
    q, k, v = head(rng, 3, 5, 4)
    mask, loud = some_mask(rng, 3, 5), torch.cat([k, 400 * q])
    return answer.attention(q, loud, torch.cat([v, v[:3]]), torch.cat([mask, torch.zeros(3, 3) > 0], 1), 0.5)

@probe("attention", hidden=True,
       hint="Hide with -inf: a number such as -10,000 may be more than what the visible keys score.")
def visible_scores_far_below_zero(answer, rng):
    q, k, v = 32 + whole(rng, 4, 3, 4), whole(rng, 32, 6, 4) / 256 - 300, rng.normal(6, 4)
    return answer.attention(q, k, v, some_mask(rng, 3, 6), 0.5)

@probe("attention", hidden=True, hint="A query that may see nothing gets zeros, not NaN and not a mean of what is hidden.")
def a_query_that_sees_nothing(answer, rng):
    q, k, v = head(rng, 4, 6, 3)
    mask = some_mask(rng, 4, 6)
    mask[rng.integers(0, 4)] = False
    return answer.attention(q, k, v, mask, 0.7)

@probe("attention", hidden=True, hint="There may be more queries than keys: scores are [n, T], the result is [n, D].")
def more_queries_than_keys_to_see(answer, rng):
    q, k, v = head(rng, 9, 2, 5)
    return answer.attention(q, k, v, torch.ones(9, 2, dtype=torch.bool), 0.3)

@probe("attention", hidden=True, hint="q, k, v and the mask belong to the caller: leave them as they were.")
def inputs_stay_as_they_were(answer, rng):
    q, k, v = head(rng, 2, 4, 3)
    mask = some_mask(rng, 2, 4)
    return [answer.attention(q, k, v, mask, 0.6), q, k, v, mask]

# ---- grouped_attention ----

@probe("grouped_attention", points=2,
       hint="A first token sees only itself, so its result is its own v. Head h reads head h // (Hq/Hkv): neighbours share.")
def neighbours_share_a_key_value_head(answer, rng):
    return answer.grouped_attention(*heads(rng, 1, 1, 6, 2, 3), 0)

@probe("grouped_attention", hint="Row 0 of a prompt sees only key 0; hide what comes later.")
def the_first_row_sees_itself_only(answer, rng):
    return answer.grouped_attention(*heads(rng, 4, 4, 2, 2, 3), 0)[0]

@probe("grouped_attention", points=2,
       hint="With a past, row i stands at position n_past + i: a single new token sees every key, not only key 0.")
def one_new_token_sees_all_the_past(answer, rng):
    q, k, v = heads(rng, 1, 8, 2, 2, 5)
    return answer.grouped_attention(q, 0 * k, v, 7)

@probe("grouped_attention", points=2,
       hint="Scale by 1/√D, with D the size of one head, q.shape[-1]; not by the width of the model, Hq · D.")
def scale_is_that_of_one_head(answer, rng):
    return answer.grouped_attention(*heads(rng, 5, 5, 8, 8, 16), 0)[-1]

@probe("grouped_attention", hint="Every head and every row at once: result [n, Hq, D], heads in their order.")
def all_of_it_together(answer, rng):
    return answer.grouped_attention(*heads(rng, 3, 8, 6, 3, 4), 5)

@probe("grouped_attention", hidden=True, points=2,
       hint="A prompt in pieces gives what it gives in one: each piece is the last n of T = n_past + n positions.")
def any_pieces_give_the_same(answer, rng):
    q, k, v = heads(rng, 7, 7, 4, 2, 5)
    cuts = [0, *sorted(rng.sample(range(1, 7), 2)), 7]
    return torch.cat([answer.grouped_attention(q[a:b], k[:b], v[:b], a) for a, b in zip(cuts, cuts[1:])])

@probe("grouped_attention", hidden=True, hint="Hkv may be 1, one head of keys for all, or Hq, one for each.")
def one_head_of_keys_or_one_for_each(answer, rng):
    return [answer.grouped_attention(*heads(rng, 2, 5, 4, n_kv, 3), 3) for n_kv in (1, 4)]

@probe("grouped_attention", hint="Scores may be in the thousands: use a softmax that subtracts the maximum.")
def scores_that_overflow(answer, rng):
    return answer.grouped_attention(whole(rng, 900, 3, 6, 4), whole(rng, 5, 7, 2, 4), rng.normal(7, 2, 4), 4)

@probe("grouped_attention", hidden=True, hint="q belongs to the caller, k and v to the cache: leave them as they were.")
def the_cache_stays_as_it_was(answer, rng):
    q, k, v = heads(rng, 2, 5, 4, 2, 3)
    return [answer.grouped_attention(q, k, v, 3), q, k, v]

@probe("grouped_attention", hidden=True, points=2,
       hint="Late in a long text nothing changes: row i sees n_past + i + 1 keys.")
def late_in_a_long_text(answer, rng):
    return answer.grouped_attention(*heads(rng, 3, 900, 3, 1, 8), 897)

# ---- online_attention ----

@probe("online_attention", hint="With one block it is plain attention: softmax of q·k/√D along the keys, times v.")
def a_single_block(answer, rng):
    return answer.online_attention(*head(rng, 3, 6, 5), 6)

@probe("online_attention", points=2,
       hint="A block with a larger score makes what you have too large: shrink sum and mix by exp(old max - new max).")
def later_blocks_have_larger_scores(answer, rng):
    q, k, v = rng.uniform(2, 4, low=1.0, high=2.0), rng.normal(9, 4) / 4, rng.normal(9, 4)
    return answer.online_attention(q, k + torch.linspace(-1, 1, 9)[:, None], v, 3)

@probe("online_attention",
       hint="The maximum is the largest so far, not the last block's: after a large score a small block changes little.")
def the_largest_score_comes_first(answer, rng):
    q, k, v = rng.uniform(2, 4, low=1.0, high=2.0), rng.normal(8, 4) / 4, rng.normal(8, 4)
    return answer.online_attention(q, k - torch.linspace(-20, 20, 8)[:, None], v, 2)

@probe("online_attention", hint="block need not divide T: the last block is shorter, and its keys count like any others.")
def the_last_block_is_shorter(answer, rng):
    drawn = [(*head(rng, 2, T, 3), block) for T, block in ((11, 4), (5, 3), (3, 8))]
    return [answer.online_attention(q, 0 * k, v, block) for q, k, v, block in drawn]

@probe("online_attention", hint="Take exp of score minus maximum, never of a score alone: it overflows.")
def scores_far_beyond_exp(answer, rng):
    q, k = whole(rng, 900, 1, 4), whole(rng, 5, 9, 4)
    return answer.online_attention(q, k[(k @ q[0]).argsort()], rng.normal(9, 4), 3)

@probe("online_attention", points=2,
       hint="What you keep must not grow with T: no list and no matrix of scores; forget a block before the next.")
def nothing_that_grows_with_the_text(answer, rng):
    q, k, v = head(rng, 3, 120, 2)
    with Kept(q) as kept:
        return [answer.online_attention(q, 0 * k, v, 4), kept.compared_with(len(k))]

@probe("online_attention",
       hint="One pass: when exp is first taken, later blocks have not been looked at. Do not find the maximum beforehand.")
def later_keys_are_not_known_before(answer, rng):
    q, k, v = whole(rng, 2, 1, 4).abs() + 1, whole(rng, 2, 9, 4), rng.normal(9, 4)
    plain = answer.online_attention(q, k.clone(), v, 3)
    with LateKeys(k, 3):
        return [plain, answer.online_attention(q, k, v, 3).isfinite().all().item()]

@probe("online_attention", hidden=True, hint="Every query has its own maximum and sum: one for all lets the others vanish.")
def each_query_has_its_own_maximum(answer, rng):
    q, k = torch.tensor(rng.shuffled([1.0, 60.0, 900.0]))[:, None] * whole(rng, 3, 3, 4).abs(), whole(rng, 5, 7, 4).abs()
    return answer.online_attention(q, k, rng.normal(7, 4), 2)

@probe("online_attention", hidden=True,
       hint="All scores may be far below zero: the maximum starts at -inf, not at 0, and the sum is never 0.")
def all_scores_are_very_negative(answer, rng):
    return answer.online_attention(95 + whole(rng, 4, 2, 4), whole(rng, 32, 8, 4) / 256 - 4, rng.normal(8, 4), 3)

@probe("online_attention", hidden=True, points=2, hint="Any block size gives the same result: 1, some, all, or more than T.")
def any_block_size(answer, rng):
    q, k, v = head(rng, 4, 13, 6, spread=4)
    return [answer.online_attention(q, k, v, block) for block in (1, rng.integers(2, 12), 13, 50)]

@probe("online_attention", hidden=True, hint="q, k and v belong to the caller: leave them as they were.")
def nothing_is_written_to(answer, rng):
    q, k, v = head(rng, 2, 6, 3)
    return [answer.online_attention(q, k, v, 4), q, k, v]
