"""What a model's attention does with a text: queries, keys, values and weights of every layer, recorded on the way.

Nothing is hooked into the model: its table of parts gets an `attend` that keeps what it is given and then calls ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.ops import default_parts


@dataclass(frozen=True)
class Seen:
    """One pass over a text of n tokens, as its attention saw it.

    Args:
        q: queries [L, n, Hq, D], rotated.
        k, v: keys (rotated) and values [L, n, Hkv, D].
        out: what attention returned [L, n, Hq, D].
        logits: of every position [n, V].
    """

    q: Float[Tensor, "L n Hq D"]
    k: Float[Tensor, "L n Hkv D"]
    v: Float[Tensor, "L n Hkv D"]
    out: Float[Tensor, "L n Hq D"]
    logits: Float[Tensor, "n V"]

    def products(self) -> Float[Tensor, "L Hq n n"]:
        """q·k of every query with every key, unscaled, -inf where the key comes later than the query."""
        group = self.q.shape[2] // self.k.shape[2]
        products = torch.einsum("lqhd,lkhd->lhqk", self.q, self.k.repeat_interleave(group, dim=2))
        later = torch.ones(products.shape[-2:], dtype=torch.bool, device=products.device).triu(1)
        return products.masked_fill(later, float("-inf"))

    def weights(self, scale: float | None = None) -> Float[Tensor, "L Hq n n"]:
        """Softmax of the products times `scale` (default: 1/√D): how much query i looks at key j; rows add up to 1."""
        return (self.products() * (self.q.shape[-1] ** -0.5 if scale is None else scale)).softmax(-1)


def watch_attention(model, ids: Sequence[int], scale: float | None = None) -> Seen:
    """Run the model over a text and record what its attention gets and gives, in every layer.

    scale: what every score is multiplied by, in place of the model's own 1/√D. Memory: 4 · L · n · Hq · D numbers, and
    L · Hq · n² more once weights are asked for.
    """
    parts, layers = default_parts(model.device.type), []

    def attend(q, kv, batch, own_scale):
        out = parts.attend(q, kv, batch, own_scale if scale is None else scale)
        (k, v), = (entry[:2] for entry in kv)
        layers.append((q, k, v, out))
        return out

    logits = model(ids, replace(parts, attend=attend))
    return Seen(*(torch.stack(each) for each in zip(*layers)), logits)
