"""Probes of lab 02: numbers become vectors, and order enters."""

from __future__ import annotations

from llmcourse.checks import exercise, probe, raises

from .embeddings_and_rope_inputs import FAR, HINTS, THETAS, angles, directions, exact_table

OWN_WORK = {
    "embed": ("torch.nn.functional.embedding", "torch.embedding", "torch.nn.Embedding"),
    "nearest": ("torch.nn.functional.cosine_similarity", "torch.nn.CosineSimilarity", "torch.cdist"),
    "rope_angles": (),
    "apply_rope": (),
}

for name, calls in OWN_WORK.items():
    exercise(name, hints=HINTS[name], forbids=("llmcourse.ops", "llmcourse.model", "transformers", *calls))

# ---- embed ----

@probe("embed",
       hint="Row i of the result is the table's row number ids[i]: in the order of the ids, repeated where they are.")
def a_row_for_each_id(answer, rng):
    return answer.embed(rng.integers(0, 11, 7), rng.normal(11, 5))

@probe("embed", hint="Take the rows as they are: no new dtype, no scaling.")
def rows_keep_their_dtype(answer, rng):
    return answer.embed(rng.integers(0, 6, 4), rng.normal(6, 3).bfloat16())

@probe("embed", points=2, hint="Python counts −1 from the end, so a wrong id would pick a row in silence: raise ValueError.")
def ids_outside_the_table(answer, rng):
    table, good = rng.normal(9, 4), rng.integers(0, 9, 3)
    wrong = [rng.integers(-9, 0), 9, 9 + rng.integers(1, 50)]
    return [answer.embed(good, table), [raises(ValueError, answer.embed, good.new_tensor([2, i]), table) for i in wrong]]

@probe("embed", hidden=True, points=2,
       hint="The result must be a copy: whoever writes into it must not change the table.")
def the_table_stays(answer, rng):
    table, ids = rng.normal(12, 4), rng.integers(0, 9, 1)
    for some in (ids, ids.new_tensor([0, 1, 2]) + ids):
        answer.embed(some, table).zero_()
    return table

@probe("embed", hidden=True, hint="No ids, no rows: a result of shape [0, d].")
def no_ids(answer, rng):
    return answer.embed(rng.integers(0, 5, 0), rng.normal(5, 3))

# ---- nearest ----

@probe("nearest", points=2,
       hint="The cosine leaves lengths out: divide the dot product by the length of the row and of the query.")
def length_does_not_count(answer, rng):
    table = rng.normal(13, 6) * rng.uniform(13, 1, low=0.1, high=20.0)
    return list(answer.nearest(3 * rng.normal(6), table, 13))

@probe("nearest", hint="Largest cosine first, and k of them: ids as int64, cosines as float32.")
def best_first_and_k_of_them(answer, rng):
    return list(answer.nearest(directions(rng, 1, 7)[0], directions(rng, 40, 7), rng.integers(3, 9)))

@probe("nearest", hint="Nothing is left out: a query that is a row of the table finds itself, with cosine 1.")
def the_query_finds_itself(answer, rng):
    table = directions(rng, 15, 6)
    return list(answer.nearest(table[rng.integers(0, 15)].clone(), table, 4))

@probe("nearest", points=2, hidden=True, exact=True,
       hint="Of equal cosines the smaller id comes first; sort has stable=True for that, topk promises nothing.")
def equal_cosines_by_id(answer, rng):
    table = exact_table(rng, rng.shuffled([1.0, 0.8, 0.8, 0.6] * 12))
    return answer.nearest(table.new_tensor([4.0, 0.0]), table, 31)[0]

@probe("nearest", hidden=True,
       hint="A row of zeros has no direction: its cosine is 0, with every query; 0/0 would be NaN, and NaN sorts first.")
def rows_of_zeros(answer, rng):
    query, table = directions(rng, 1, 5)[0], directions(rng, 8, 5)
    table[rng.integers(0, 4)] = 0.0
    return [*answer.nearest(query, table, 8), answer.nearest(table.new_zeros(5), table, 3)[1]]

@probe("nearest", hidden=True, hint="Opposite directions have cosine −1 and come last; no absolute values.")
def opposite_comes_last(answer, rng):
    table = directions(rng, 6, 9)
    return list(answer.nearest(-table[rng.integers(0, 6)], table, 6))

@probe("nearest", hidden=True, atol=2e-5,
       hint="Compute in float32 whatever the table's dtype: bfloat16 keeps three digits, too few to rank neighbours.")
def a_table_in_bfloat16(answer, rng):
    return list(answer.nearest(rng.normal(33), rng.normal(21, 33).bfloat16(), 5))

@probe("nearest", hidden=True, hint="A table with fewer than k rows gives all of them, and stays as it was, like the query.")
def fewer_rows_than_k(answer, rng):
    query, table = 3 * directions(rng, 1, 3)[0], 3 * directions(rng, 5, 3)
    return [*answer.nearest(query, table, 50), query, table]

# ---- rope_angles ----

@probe("rope_angles", atol=1e-4, points=2,
       hint="Pair i turns by theta^(−2i/D) radians per token: 2i over D, with a minus sign, pair 0 fastest.")
def the_speed_of_each_pair(answer, rng):
    return list(answer.rope_angles(rng.integers(1, 60, 5), rng.choice([6, 10, 14]), rng.choice(THETAS)))

@probe("rope_angles", atol=1e-4,
       hint="The angle is position × speed, with the positions that were given: any numbers, in any order, not 0, 1, 2 …")
def positions_as_given(answer, rng):
    return list(answer.rope_angles(30 + 5 * rng.integers(0, 9, 4), 2, rng.choice(THETAS)))

@probe("rope_angles", points=2, atol=5e-3,
       hint="These positions are far out, and bfloat16 takes 32,001 for 32,000. Compute the angles in float32.")
def far_positions(answer, rng):
    return list(answer.rope_angles(rng.integers(FAR - 9_000, FAR + 1, 7), 22, rng.choice(THETAS)))

@probe("rope_angles", hidden=True, atol=1e-4, hint="At position 0 nothing turns: cos 1, sin 0, in every pair.")
def nothing_turns_at_position_0(answer, rng):
    return list(answer.rope_angles(rng.integers(0, 1, 3), 14, rng.choice(THETAS)))

@probe("rope_angles", hidden=True, points=2, atol=1e-4,
       hint="The base is theta, and it is an argument: the speeds must follow it.")
def theta_is_the_base(answer, rng):
    positions = rng.integers(3, 40, 3)
    return [tensor for theta in rng.sample(THETAS, 3) for tensor in answer.rope_angles(positions, 10, theta)]

@probe("rope_angles", hidden=True, atol=5e-3,
       hint="One token far out, as in decode: its angle depends on its position, not on how many tokens came with it.")
def one_token_alone(answer, rng):
    return list(answer.rope_angles(rng.integers(20_000, FAR, 1), 2, rng.choice(THETAS)))

@probe("rope_angles", hidden=True, hint="D/2 pairs have D/2 angles: return cos and sin of shape [n, D/2], float32.")
def half_as_many_angles_as_channels(answer, rng):
    return [[list(t.shape), str(t.dtype)] for t in answer.rope_angles(rng.integers(0, 50, 9), 20, 7_000.0)]

# ---- apply_rope ----

@probe("apply_rope", points=3,
       hint="Half-split layout: channel j turns together with channel j + D/2, not with its neighbour j + 1.")
def partners_are_half_a_head_apart(answer, rng):
    turn, results = angles(rng, 1, 5), []
    for channel in (rng.integers(0, 5), rng.integers(5, 10)):
        x = rng.integers(0, 1, 1, 1, 10).float()
        x[..., channel] = 1.0
        results.append(answer.apply_rope(x, *turn).abs())  # where the 1 goes; a wrong sign is another probe's question
    return results

@probe("apply_rope", points=2,
       hint="Turn from a towards b: new a = a·cos − b·sin, new b = b·cos + a·sin. The other signs turn backwards.")
def the_turn_goes_forward(answer, rng):
    return answer.apply_rope(rng.normal(1, 1, 2), *angles(rng, 1, 1))

@probe("apply_rope", points=2, hint="Token i turns by row i of cos and sin: every token by its own angles.")
def every_token_by_its_own_angles(answer, rng):
    return answer.apply_rope(rng.normal(5, 1, 2), *angles(rng, 5, 1))

@probe("apply_rope", hint="All heads of a token turn by the same angles: make cos and sin [n, 1, D/2].")
def heads_of_a_token_turn_alike(answer, rng):
    return answer.apply_rope(rng.normal(4, 3, 2), *angles(rng, 4, 1))

@probe("apply_rope", points=2,
       hint="With as many heads as tokens a wrong axis goes unnoticed: cos and sin belong to tokens, axis 0.")
def as_many_heads_as_tokens(answer, rng):
    return answer.apply_rope(rng.normal(3, 3, 2), *angles(rng, 3, 1))

@probe("apply_rope", hidden=True, hint="Do not write into x: the caller still needs the vectors before the turn.")
def x_stays_as_it_was(answer, rng):
    x = rng.normal(3, 5, 2)
    return [answer.apply_rope(x, *angles(rng, 3, 1)), x]

@probe("apply_rope", rtol=2e-2, atol=4e-2,
       hint="The result has the dtype of x; cos and sin stay float32, so bring the products back.")
def the_dtype_of_x(answer, rng):
    return answer.apply_rope(rng.normal(4, 3, 2).bfloat16(), *angles(rng, 4, 1))

@probe("apply_rope", hidden=True, points=2, atol=1e-4,
       hint="A query at position m and a key at position n must give a score that depends on m − n only.")
def only_the_distance_survives(answer, rng):
    q, k, speed = rng.normal(1, 1, 12), rng.normal(1, 1, 12), rng.uniform(6, low=0.01, high=1.0)
    m, n, far = rng.integers(9, 18), rng.integers(0, 9), rng.integers(10, 90)

    def at(x, position):
        return answer.apply_rope(x, (position * speed).cos()[None], (position * speed).sin()[None])

    return [(at(q, m) * at(k, n)).sum(), (at(q, m + far) * at(k, n + far)).sum()]
