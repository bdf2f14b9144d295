"""Named wrong answers of lab 02."""

from __future__ import annotations

import torch

from llmcourse.checks import edited, wrong

# ---- embed ----

edited("embed", "takes_minus_one_for_the_last", old="(ids < 0) | (ids >= table.shape[0])", new="ids >= table.shape[0]",
       says="counts −1 from the end", why="An id below 0 picks a row from the end of the table, in silence.")

edited("embed", "one_id_too_many", old="ids >= table.shape[0]", new="ids > table.shape[0]",
       says="out of bounds", why="It lets the id V through; the last row has number V − 1.")


@wrong("embed", says="must be a copy")
def a_view_of_the_table(ids, table):
    """Where the ids follow each other it returns a slice, a view: writing into the result changes the model's table."""
    if ((ids < 0) | (ids >= table.shape[0])).any():
        raise ValueError("an id outside the table")
    n = ids.shape[0]
    if n and bool((ids == torch.arange(int(ids[0]), int(ids[0]) + n)).all()):
        return table[int(ids[0]) : int(ids[0]) + n]
    return table[ids]


@wrong("embed", says="in the order of the ids")
def sorted_rows(ids, table):
    """It returns the rows in the order of the table, not in the order of the ids."""
    if ((ids < 0) | (ids >= table.shape[0])).any():
        raise ValueError("an id outside the table")
    return table[ids.sort().values]


@wrong("embed", says="repeated where they are")
def each_row_once(ids, table):
    """It leaves out a token that occurred before; every place in the text needs its row."""
    if ((ids < 0) | (ids >= table.shape[0])).any():
        raise ValueError("an id outside the table")
    return table[list(dict.fromkeys(ids.tolist()))]


edited("embed", "always_float32", old="return table[ids]", new="return table[ids].float()",
       says="no new dtype", why="It turns the rows into float32; they keep the table's dtype.")

# ---- nearest ----

edited("nearest", "dot_product", old="table @ query / lengths", new="table @ query",
       says="leaves lengths out", why="It ranks by the dot product, so long rows come first, whatever their direction.")

edited("nearest", "length_of_the_query_only", old="table.norm(dim=1) * query.norm()",
       new="query.norm().expand(table.shape[0])",
       says="length of the row", why="It divides by the length of the query only; the rows keep theirs.")

edited("nearest", "length_of_the_rows_only", old="table.norm(dim=1) * query.norm()", new="table.norm(dim=1)",
       says="and of the query", why="The order is right, but without the query's length the numbers are no cosines.")


@wrong("nearest", says="leaves lengths out")
def by_distance(query, table, k):
    """It ranks by distance, ‖a − b‖, without bringing the vectors to length 1: a long row is far from everything."""
    query, table = query.float(), table.float()
    order = (table - query).norm(dim=1).sort(stable=True).indices[:k]
    lengths = table.norm(dim=1) * query.norm()
    return order, torch.where(lengths > 0, table @ query / lengths, 0.0)[order]


edited("nearest", "leaves_the_query_out", old="return ids[:k], best[:k]", new="return ids[1 : k + 1], best[1 : k + 1]",
       says="Nothing is left out", why="It drops the best row, because it takes it for the query itself.")

edited("nearest", "largest_of_equal_ids", old="cosines.sort(descending=True, stable=True)",
       new="(t.flip(0) for t in cosines.sort(stable=True))",
       says="the smaller id comes first", why="Of equal cosines it puts the larger id first.")

edited("nearest", "nan_for_zeros", old="torch.where(lengths > 0, table @ query / lengths, 0.0)",
       new="table @ query / lengths",
       says="NaN sorts first", why="A row of zeros is divided by its length 0: NaN, which sorts in front of everything.")

edited("nearest", "normalizes_in_place", old="query, table = query.float(), table.float()",
       new="query, table = query.float(), table.float()\n    table /= table.norm(dim=1, keepdim=True).clamp(min=1e-9)",
       says="stays as it was", why="It divides the table itself; float() makes no copy of what is float32 already.")

edited("nearest", "either_direction", old="table @ query / lengths", new="(table @ query).abs() / lengths",
       says="no absolute values", why="It takes opposite directions for the same.")

edited("nearest", "in_the_tables_dtype", old="query, table = query.float(), table.float()",
       new="query = query.to(table.dtype)",
       says="Compute in float32", why="It computes in the table's dtype; in bfloat16 a cosine has three digits.")

# ---- rope_angles ----

edited("rope_angles", "exponent_i_over_D", old="torch.arange(0, head_dim, 2,", new="torch.arange(0, head_dim // 2, 1,",
       says="2i over D", why="The exponent is i/D where it should be 2i/D, so the slow hands are too fast.")

edited("rope_angles", "speeds_upside_down", old="1.0 / theta**exponents", new="theta**exponents",
       says="with a minus sign", why="The sign of the exponent is missing: the hands get faster, not slower.")

edited("rope_angles", "slowest_pair_first", old="1.0 / theta**exponents", new="(1.0 / theta**exponents).flip(0)",
       says="pair 0 fastest", why="The speeds stand in the opposite order: pair 0 is the fastest.")

edited("rope_angles", "always_theta_10_000", old="1.0 / theta**exponents", new="1.0 / 10_000.0**exponents",
       says="it is an argument", why="It uses 10,000, whatever theta is.")

edited("rope_angles", "angles_in_bfloat16", old="positions.to(torch.float32)[:, None] * speeds[None, :]",
       new="(positions.to(torch.bfloat16)[:, None] * speeds.to(torch.bfloat16)[None, :]).float()",
       says="Compute the angles in float32",
       why="It computes the angles in bfloat16: far out a whole group of positions gets the same angle.")

edited("rope_angles", "speeds_in_bfloat16", old="1.0 / theta**exponents",
       new="(1.0 / theta**exponents).to(torch.bfloat16).float()",
       says="Compute the angles in float32",
       why="The speeds are rounded to bfloat16; multiplied by a large position the error is many turns.")

edited("rope_angles", "speeds_in_float16", old="1.0 / theta**exponents",
       new="(1.0 / theta**exponents).to(torch.float16).float()",
       says="Compute the angles in float32",
       why="The speeds are rounded to float16; multiplied by a large position the error is radians.")

edited("rope_angles", "result_in_bfloat16", old="return angles.cos(), angles.sin()",
       new="return angles.cos().bfloat16().float(), angles.sin().bfloat16().float()",
       says="theta^(−2i/D)", why="The cosines are rounded to bfloat16, three digits, and stay that coarse.")

edited("rope_angles", "counts_for_itself", old="positions.to(torch.float32)[:, None]",
       new="torch.arange(len(positions), dtype=torch.float32)[:, None]",
       says="with the positions that were given",
       why="It counts 0, 1, 2, … itself; in decode the one new token would stand at position 0 for ever.")

edited("rope_angles", "a_full_turn_a_token", old="1.0 / theta**exponents", new="2 * torch.pi / theta**exponents",
       says="radians per token", why="The first hand should turn by one radian per token, not by a whole turn.")

edited("rope_angles", "sine_first", old="return angles.cos(), angles.sin()", new="return angles.sin(), angles.cos()",
       says="cos 1, sin 0", why="It returns the sine first; the order is cos, sin.")

edited("rope_angles", "an_angle_for_each_channel", old="return angles.cos(), angles.sin()",
       new="angles = torch.cat([angles, angles], dim=-1)\n    return angles.cos(), angles.sin()",
       says="D/2 pairs have D/2 angles", why="It returns an angle for each channel, D of them; a pair shares one.")

# ---- apply_rope ----


@wrong("apply_rope", says="not with its neighbour")
def interleaved(x, cos, sin):
    """It turns channel 2j with channel 2j + 1, the interleaved layout: right for other models, wrong for this one."""
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2).to(x.dtype)


edited("apply_rope", "turns_backwards", old="[a * cos - b * sin, b * cos + a * sin]",
       new="[a * cos + b * sin, b * cos - a * sin]",
       says="turn backwards", why="It turns backwards: the signs of the two sines are exchanged.")

edited("apply_rope", "no_minus", old="a * cos - b * sin", new="a * cos + b * sin",
       says="a·cos − b·sin", why="Both sines have a plus: that is no rotation, and lengths change.")

edited("apply_rope", "everybody_at_position_0", old="cos[:, None, :], sin[:, None, :]", new="cos[:1, None], sin[:1, None]",
       says="every token by its own angles", why="All tokens turn by the angles of the first one, so order is lost.")

edited("apply_rope", "angles_for_heads", old="cos[:, None, :], sin[:, None, :]",
       new="(t[None] if len(t) == x.shape[1] else t[:, None] for t in (cos, sin))",
       says="belong to tokens",
       why="Where there are as many heads as tokens, it takes the rows of cos and sin for heads.")

edited("apply_rope", "first_head_only", old="return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)",
       new="turned = torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)\n"
           "    return torch.cat([turned[:, :1], x[:, 1:]], dim=1)",
       says="All heads of a token", why="Only the first head turns.")

edited("apply_rope", "forgets_the_dtype", old=".to(x.dtype)", new="",
       says="has the dtype of x", why="With a bfloat16 x the result is float32: cos and sin pull it up.")


@wrong("apply_rope", says="Do not write into x")
def writes_into_x(x, cos, sin):
    """It writes the turned vectors into x, so the caller loses the old ones."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    x.copy_(torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1))
    return x


@wrong("apply_rope", says="b·cos + a·sin")
def uses_the_new_a(x, cos, sin):
    """It computes the new b from the new a; both need the old ones."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    a = a * cos - b * sin
    b = b * cos + a * sin
    return torch.cat([a, b], dim=-1).to(x.dtype)
