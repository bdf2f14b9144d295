"""Four ways to tell attention where a token stands, and one small lesson that each of them is taught.

The learner is a single attention layer over random tokens, and its lesson is the token that stood some places back. It
is taught on short texts and examined on longer ones: positions that it never met show what it really learned.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from llmcourse.ops.reference import rope, rope_angles

WAYS = ("none", "learned", "sinusoidal", "RoPE")
V, WIDTH, THETA = 32, 64, 10_000.0  # vocabulary; width, also the size of the only head; base of all frequencies
BATCH, STEPS, LEARNING_RATE = 64, 300, 3e-3
BACK = 3  # places between a token and the one that it must name


class OneLayer(nn.Module):
    """Table → attention → head: logits [b, n, V] for ids [b, n], with one of WAYS to say where a token stands.

    none: the causal mask alone. learned: a row for each position is added to the token's. sinusoidal: the row is made of
    sines and cosines instead (Vaswani et al. 2017, §3.5). RoPE: queries and keys are turned.
    """

    def __init__(self, way: str, longest: int, generator: torch.Generator):
        super().__init__()
        if way not in WAYS:
            raise ValueError(f"no way {way!r} to say where a token stands; there are {', '.join(WAYS)}")

        def weight(rows: int, columns: int, size: float) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator) * size)

        self.way, self.table = way, weight(V, WIDTH, 1.0)
        self.q, self.k, self.v = (weight(WIDTH, WIDTH, WIDTH**-0.5) for _ in range(3))
        self.head = weight(WIDTH, V, WIDTH**-0.5)
        self.cos, self.sin = rope_angles(torch.arange(longest), WIDTH, THETA)
        self.rows = weight(longest, WIDTH, 1.0) if way == "learned" else torch.cat([self.sin, self.cos], -1)

    def forward(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n V"]:
        n = ids.shape[1]
        x = self.table[ids]
        if self.way in ("learned", "sinusoidal"):
            x = x + self.rows[:n]
        q, k, v = x @ self.q, x @ self.k, x @ self.v
        if self.way == "RoPE":
            # `rope` wants [n, H, D]: the texts of the batch stand where it expects the heads
            q, k = (rope(each.transpose(0, 1), self.cos[:n], self.sin[:n]).transpose(0, 1) for each in (q, k))
        return scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)[:, 0] @ self.head


def look_back(way: str, taught: int = 32, examined: int = 128, steps: int = STEPS, seed: int = 0) -> list[float]:
    """Teach one layer to name the token BACK places before, on texts of `taught` tokens; examine it on longer ones.

    Returns the share of right answers at positions BACK … examined − 1. Guessing gives 1 / V. A few seconds.
    """
    generator = torch.Generator().manual_seed(seed)
    layer = OneLayer(way, examined, generator)
    learning = torch.optim.Adam(layer.parameters(), lr=LEARNING_RATE)
    for _ in range(steps):
        ids = torch.randint(0, V, (BATCH, taught), generator=generator)
        loss = cross_entropy(layer(ids)[:, BACK:].flatten(0, 1), ids[:, :-BACK].flatten())
        learning.zero_grad()
        loss.backward()
        learning.step()
    with torch.inference_mode():
        ids = torch.randint(0, V, (4 * BATCH, examined), generator=generator)
        return (layer(ids)[:, BACK:].argmax(-1) == ids[:, :-BACK]).float().mean(0).tolist()
