# %% [markdown]
# # Lab 02 · Look up, look around, and turn
# Four exercises, about fifty minutes. At the end your rotation is at work in every layer of the real model.
#
# | letter | meaning |
# |---|---|
# | V | vocabulary: how many rows the table has |
# | d | width: how many numbers stand for one token inside the model |
# | n | tokens that go through the model in one step |
# | H | heads: query heads, or key/value heads |
# | D | head size: how many numbers a query or a key has |
# | θ, theta | base of the rotary frequencies |

# %%
from llmcourse import Engine
from llmcourse.ops import REFERENCE
from llmcourse.workbook import check, hint, run_mine, your_code

import torch
from jaxtyping import Float, Int
from torch import Tensor

# %% [markdown]
# ### 02.1 Look up
# The first thing that happens to an id: it becomes a row of the table.
#
# *difficulty 1/5 · 5 minutes · unlocks: the engine's embedding*

# %% ex="embed"
def embed(ids: Int[Tensor, "n"], table: Float[Tensor, "V d"]) -> Float[Tensor, "n d"]:
    """One row of the table for each id.

    Args:
        ids: [n] int64, n ≥ 0, in any order, some perhaps more than once.
        table: [V, d], in any dtype. It stays as it was, also when the result is written into later.

    Returns a new tensor [n, d] of the table's dtype: row i is the table's row number ids[i]. Raises
    ValueError for an id below 0 or not below V. (Indexing would take −1 for the last row, and a
    mistake elsewhere would go on in silence.)

    Example: with the table [[1., 2.], [3., 4.], [5., 6.]] the ids [2, 0, 2] give
    [[5., 6.], [1., 2.], [5., 6.]].
    """
    ### BEGIN SOLUTION
    outside = (ids < 0) | (ids >= table.shape[0])
    if outside.any():
        raise ValueError(f"id {ids[outside][0].item()} is not a row of a table with {table.shape[0]} rows")
    return table[ids]
    ### END SOLUTION

# %% check="embed"
check("02.embed", embed=embed)

# %% [markdown]
# ### 02.2 Look around
# Which rows point the same way as a given vector? How long they are must not matter, so the measure is the cosine of
# the angle between them: $\cos(a, b) = a·b \,/\, (‖a‖ ‖b‖)$.
#
# *difficulty 2/5 · 15 minutes · unlocks: your own walk through the table, below*

# %% ex="nearest"
def nearest(
    query: Float[Tensor, "d"], table: Float[Tensor, "V d"], k: int
) -> tuple[Int[Tensor, "k"], Float[Tensor, "k"]]:
    """The k rows of a table whose direction is nearest to that of the query.

    Args:
        query: [d], a row of the table or any other vector.
        table: [V, d], in any dtype; the cosines are computed in float32. Both stay as they were.
        k: how many rows are wanted, k ≥ 1; of a smaller table all rows.

    Returns (ids, cosines): ids [k] int64 and cosines [k] float32, largest cosine first; of equal
    cosines the smaller id first. Nothing is left out: if the query is a row of the table, that row
    is among the results. A row of zeros (or a query of zeros) has no direction; its cosine is 0.

    Example: with the table [[2., 0.], [0., 5.], [3., 3.], [-1., 0.]] the query [1., 0.] and k = 3
    give ids [0, 2, 1] and cosines [1.0, 0.7071, 0.0].
    """
    ### BEGIN SOLUTION
    query, table = query.float(), table.float()
    lengths = table.norm(dim=1) * query.norm()
    cosines = torch.where(lengths > 0, table @ query / lengths, 0.0)
    best, ids = cosines.sort(descending=True, stable=True)
    return ids[:k], best[:k]
    ### END SOLUTION

# %% check="nearest"
check("02.nearest", nearest=nearest)

# %% [markdown]
# Look around in SmolLM2's own table. Change the words: common ones, names, numbers, a piece of code. Words of several
# tokens have no row.

# %%
engine = Engine()
tokenizer, table = engine.tokenizer, engine.model.weights.embed

# %%
# NBVAL_CHECK_OUTPUT
with your_code():
    for word in [" green", " Monday", " Mozart", " seventeen", "return"]:
        (word_id,) = tokenizer.encode(word)
        ids, cosines = nearest(table[word_id], table, 7)
        near = [f"{token} {cosine:.2f}" for token, cosine in zip(tokenizer.tokens(ids.tolist()), cosines.tolist())]
        print("  ".join(near))

# %% [markdown]
# ### 02.3 The angles
# Every pair of channels is the hand of a clock with a speed of its own. Pair 0 is the fastest: one radian for each
# token. Where does each hand stand at each position?
#
# *difficulty 2/5 · 15 minutes · unlocks: the engine's RoPE (together with 02.4)*

# %% ex="rope_angles"
def rope_angles(
    positions: Int[Tensor, "n"], head_dim: int, theta: float
) -> tuple[Float[Tensor, "n D/2"], Float[Tensor, "n D/2"]]:
    """Cosine and sine of the angle of every pair of channels, at every position.

    Args:
        positions: [n] int64, the tokens' positions, any numbers ≥ 0: a prompt brings 0, 1, 2, …,
            and a later step perhaps the one number 37,412.
        head_dim: D, even.
        theta: θ, the base of the frequencies.

    Returns (cos, sin), each [n, D/2] float32. Row p, column i belongs to the angle
    positions[p] · θ^(−2i/D), in radians, i = 0 … D/2 − 1. Compute in float32 from the beginning:
    at large positions an angle in half precision is noise.

    Example: position 3 with D = 4 and θ = 100 has the angles 3 and 3 · 100^(−2/4) = 0.3, so cos is
    [[-0.9900, 0.9553]] and sin is [[0.1411, 0.2955]].
    """
    ### BEGIN SOLUTION
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32, device=positions.device) / head_dim
    speeds = 1.0 / theta**exponents
    angles = positions.to(torch.float32)[:, None] * speeds[None, :]
    return angles.cos(), angles.sin()
    ### END SOLUTION

# %% check="rope_angles"
check("02.rope_angles", rope_angles=rope_angles)

# %% [markdown]
# ### 02.4 Turn
# Now turn queries and keys. There are two ways to pair the channels, and SmolLM2 was trained with this one, *half-split*:
# channel j and channel j + D/2 are the two coordinates of one hand.
#
# *difficulty 3/5 · 15 minutes · unlocks: the engine's RoPE (together with 02.3)*

# %% ex="apply_rope"
def apply_rope(
    x: Float[Tensor, "n H D"], cos: Float[Tensor, "n D/2"], sin: Float[Tensor, "n D/2"]
) -> Float[Tensor, "n H D"]:
    """Turn every pair of channels of every head by its token's angle.

    Args:
        x: [n, H, D], queries or keys. It stays as it was.
        cos, sin: [n, D/2] float32, as `rope_angles` returns them: row i is for token i.

    Returns a new tensor [n, H, D] of the dtype of x. Channels j and j + D/2 are a pair (a, b), and
    it becomes (a·cos − b·sin, b·cos + a·sin) with column j of cos and sin, in all heads alike.

    Example: one token, one head, D = 4, cos [[0., 1.]], sin [[1., 0.]]: x = [[[5., 6., 7., 8.]]]
    becomes [[[-7., 6., 5., 8.]]]. The pair (5, 7) turned by a quarter, the pair (6, 8) not at all.
    """
    ### BEGIN SOLUTION
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)
    ### END SOLUTION

# %% check="apply_rope"
check("02.apply_rope", apply_rope=apply_rope)

# %% [markdown]
# ## Only the distance survives
# Two vectors, a query and a key, stand at positions m and n. Take three pairs of positions with the same distance, one
# of them far out, and then one with another distance. What must the scores be?

# %%
with your_code():
    generator = torch.Generator().manual_seed(2)
    q, k = torch.randn(2, 1, 1, 64, generator=generator)

    def turned(x, position):
        return apply_rope(x, *rope_angles(torch.tensor([position]), 64, 100_000.0))

    for m, n in [(5, 2), (105, 102), (8_005, 8_002), (5, 3)]:
        print(f"query at {m:5,}, key at {n:5,}: q·k = {(turned(q, m) * turned(k, n)).sum():.4f}")

# %% [markdown]
# The first three agree, up to the last digit of float32 angles far out. The fourth does not.

# %% [markdown]
# ## Your rotation against the engine's
# The same angles and the same turn, on the positions of a long text. The largest difference that can come from
# rounding is a few thousandths in an angle at position 40,000; in the turn itself it is about a millionth.

# %%
with your_code():
    positions = torch.tensor([0, 1, 7, 500, 8_191, 40_000])
    x = torch.randn(6, 9, 64, generator=generator)
    cos, sin = rope_angles(positions, 64, 100_000.0)
    want_cos, want_sin = REFERENCE.rope_angles(positions, 64, 100_000.0)
    print(f"angles: largest difference {max((cos - want_cos).abs().max(), (sin - want_sin).abs().max()):.1e}")
    difference = (apply_rope(x, want_cos, want_sin) - REFERENCE.rope(x, want_cos, want_sin)).abs().max()
    print(f"turn:   largest difference {difference:.1e}")

# %% [markdown]
# ## Your rotation in the engine
# **Save this notebook first.** The next cell reads it as a file, checks your answers, and runs the real model with
# every stage that passes. Your angles are computed once in a step; your turn is called twice in each of the 30 layers,
# for the queries and for the keys.

# %%
result = run_mine("The capital of France is", folder=".", max_tokens=12)

# %% [markdown]
# One wrong sign, or the other layout, and the first word would still be right, and hardly anything after it: the lesson
# shows what that looks like.
#
# (The engine also runs models whose context was stretched after the training, by slowing the clocks down. Your angles
# know nothing of that, so for such a model the engine keeps its own, and turns with yours.)
#
# Next: the queries and keys that you turned are multiplied with each other, and tokens begin to look at each other.
# **Lesson 03.**
