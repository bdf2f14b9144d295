"""What lab 02 is checked with: its hints, angles, and tables whose cosines are exact in every order of arithmetic."""

from __future__ import annotations

from .rng import Rng

THETAS = (500.0, 7_000.0, 20_000.0, 300_000.0)  # neither of the two that everybody knows
FAR = 40_000  # a bfloat16 position is off by up to 128 here

HINTS = {
    "embed": (
        "An id is the number of a row. You want those rows, in the order of the ids.",
        "result[i] = table[ids[i]]. A tensor may be indexed by a tensor of ids, all at once. Look for ids that are "
        "below 0 or not below V first.",
        "1. If any of ids is < 0 or ≥ table.shape[0], raise ValueError and name it. 2. Return table[ids]: indexing "
        "with a tensor copies, so the table is safe from what happens to the result.",
    ),
    "nearest": (
        "Two rows are near when they point the same way. How long they are must not count.",
        "cosine(a, b) = a·b / (‖a‖ ‖b‖). For all rows at once: (table @ query) / (lengths of the rows × length of the "
        "query), in float32.",
        "1. query and table to float32. 2. dots = table @ query. 3. lengths = table.norm(dim=1) * query.norm(). "
        "4. cosines = dots / lengths, and 0 where the length is 0. 5. Sort with descending=True and stable=True (then "
        "the smaller id stays in front of an equal one), and keep the first k.",
    ),
    "rope_angles": (
        "Each pair of channels is a clock hand with a speed of its own. Angle = position × speed.",
        "speed of pair i = theta^(−2i/D) radians per token, i = 0 … D/2 − 1. angle[p, i] = positions[p] × speed[i]. "
        "Everything in float32.",
        "1. exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim. 2. speeds = 1 / theta ** "
        "exponents. 3. angles = positions.to(torch.float32)[:, None] * speeds[None, :]. 4. Return angles.cos(), "
        "angles.sin().",
    ),
    "apply_rope": (
        "Each pair of channels is a point in the plane, and it turns by its angle around the origin.",
        "With a = channel j, b = channel j + D/2: new a = a·cos − b·sin, new b = b·cos + a·sin. The angle depends on "
        "the token and on j, not on the head.",
        "1. a, b = x.chunk(2, dim=-1): the first and the second half of the channels. 2. cos and sin are [n, D/2]; "
        "make them [n, 1, D/2], so that all heads of a token share them. 3. torch.cat([a * cos - b * sin, b * cos + "
        "a * sin], dim=-1), in the dtype of x.",
    ),
}


def angles(rng: Rng, n: int, pairs: int):
    """Cosine and sine, each [n, pairs], of angles anywhere on the circle."""
    drawn = rng.uniform(n, pairs, low=-3.0, high=3.0)
    return drawn.cos(), drawn.sin()


def directions(rng: Rng, rows: int, width: int):
    """A table [rows, width] of vectors of length 1, for probes that are not about lengths."""
    table = rng.normal(rows, width)
    return table / table.norm(dim=1, keepdim=True)


def exact_table(rng: Rng, cosines: list[float]):
    """A table [V, 2] whose rows have these cosines with (1, 0): 1, 0.8 or 0.6, and equal ones are equal to the last bit.

    Rows are (5, 0), (4, 3) and (3, 4) times powers of two: dots and lengths are whole numbers, in any order of arithmetic.
    """
    import torch

    row = {1.0: [5.0, 0.0], 0.8: [4.0, 3.0], 0.6: [3.0, 4.0]}
    lengths = torch.tensor([[2.0 ** rng.integers(0, 6)] for _ in cosines])
    return torch.tensor([row[one] for one in cosines]) * lengths
