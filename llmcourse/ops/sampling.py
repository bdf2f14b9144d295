"""From logits to one token. The order is fixed: penalty → temperature → top-k → top-p → min-p → draw."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from llmcourse.errors import NonFiniteLogits


def sample(logits: Float[Tensor, "V"], params, u: float, previous_ids: Sequence[int]) -> int:
    """Choose the next token: `draw(probabilities(…), u)`.

    Args:
        logits: one row of the model's output; −inf marks a token that may not be drawn.
        params: a `SamplingParams`; temperature 0 means greedy: the largest logit, the smallest id where several are equal.
        u: a uniform number in [0, 1); the same u draws the same token.
        previous_ids: prompt and output so far, for the repetition penalty.

    Raises NonFiniteLogits when a logit is NaN or +inf, or when all are −inf.
    """
    if params.temperature == 0:  # what follows comes to the same: all probability lies on one token
        return int(penalised(logits, params, previous_ids).argmax())
    return draw(probabilities(logits, params, previous_ids), u)


def probabilities(logits: Float[Tensor, "V"], params, previous_ids: Sequence[int]) -> Float[Tensor, "V"]:
    """The distribution that the next token is drawn from: penalty, temperature and filters applied. Arguments as `sample`.

    In float64 (float32 where the device has no other), so that rounding cannot reach the last tokens.
    """
    logits = penalised(logits, params, previous_ids)
    if params.temperature == 0:
        logits = only(logits, logits.argmax()[None])
    else:
        logits = apply_temperature(logits, params.temperature)
        for keep in FILTERS:
            logits = keep(logits, params)
    return logits.softmax(-1, dtype=torch.float32 if logits.device.type == "mps" else torch.float64)


def penalised(logits: Float[Tensor, "V"], params, previous_ids: Sequence[int]) -> Float[Tensor, "V"]:
    """The logits, checked, in float32 or wider, with the repetition penalty."""
    top = logits.max().item()
    if not math.isfinite(top):
        raise NonFiniteLogits(f"the largest of {len(logits):,} logits is {top}: nothing can be chosen from them")
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return repetition_penalty(wide, previous_ids, params.repetition_penalty)


def repetition_penalty(logits: Float[Tensor, "V"], previous_ids: Sequence[int], penalty: float) -> Float[Tensor, "V"]:
    """Make every token that already occurred less likely (penalty > 1), once, however often it occurred.

    A positive logit is divided, a negative one multiplied: both move down.

    Source: Keskar et al. 2019, "CTRL", §4.1, with the sign rule that every engine has added since.
    """
    if penalty == 1.0 or not previous_ids:
        return logits
    seen = torch.tensor(sorted(set(previous_ids)), device=logits.device)
    old = logits[seen]
    penalised = logits.clone()
    penalised[seen] = torch.where(old > 0, old / penalty, old * penalty)
    return penalised


def apply_temperature(logits: Float[Tensor, "V"], temperature: float) -> Float[Tensor, "V"]:
    """Divide by the temperature: below 1 sharper, above 1 flatter.

    The maximum is subtracted first, so that a tiny temperature cannot overflow. One beyond the range of the logits' own
    numbers counts as the nearest within it: 0 / 0 and −inf / inf would be NaN.
    """
    range_ = torch.finfo(logits.dtype)
    return (logits - logits.max()) / min(max(temperature, range_.tiny), range_.max)


def top_k_filter(logits: Float[Tensor, "V"], k: int) -> Float[Tensor, "V"]:
    """Keep the k largest logits (exactly k; of equal ones the smaller ids); 0, or k ≥ V, keeps all."""
    if k == 0 or k >= len(logits):
        return logits
    smallest = logits.topk(k).values[-1]
    above = (logits > smallest).nonzero().flatten()
    ties = (logits == smallest).nonzero().flatten()
    return only(logits, torch.cat([above, ties[: k - len(above)]]))


def top_p_filter(logits: Float[Tensor, "V"], p: float) -> Float[Tensor, "V"]:
    """Keep the likeliest tokens until their probabilities reach p; the token that crosses p stays. p ≥ 1 keeps all.

    At least one token stays, so p = 0 is greedy. Of equal ones the smaller ids come first.

    Sorting a whole vocabulary takes longer than all the rest of sampling. Tokens less likely than (1 − p)/V sum to less
    than 1 − p, so those before them reach p without them: only the others are sorted (half of that, to be safe).

    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", §3.1.
    """
    if p >= 1:
        return logits
    probabilities = logits.softmax(-1)
    likely = (probabilities > (1 - p) / (2 * len(logits))).nonzero().flatten()
    order = likely[logits[likely].argsort(descending=True, stable=True)]
    before = probabilities[order].cumsum(-1) - probabilities[order]
    n_kept = max(1, int((before < p).sum()))
    return only(logits, order[:n_kept])


def only(logits: Float[Tensor, "V"], kept: Int[Tensor, "m"]) -> Float[Tensor, "V"]:
    """The logits of the m kept ids; −inf for all others."""
    return torch.full_like(logits, -math.inf).index_copy(0, kept, logits[kept])


def min_p_filter(logits: Float[Tensor, "V"], min_p: float) -> Float[Tensor, "V"]:
    """Keep the tokens whose probability is at least min_p times that of the likeliest. 0 keeps all.

    Source: Nguyen et al. 2024, "Turning Up the Heat: Min-p Sampling", §3.
    """
    if min_p == 0:
        return logits
    return logits.masked_fill(logits < logits.max() + math.log(min_p), -math.inf)


def draw(probabilities: Float[Tensor, "V"], u: float) -> int:
    """Invert the cumulative distribution: the first token, in order of ids, at which the running sum exceeds u."""
    running = probabilities.cumsum(-1)
    token = int(torch.searchsorted(running, u * running[-1], right=True))
    return min(token, int((probabilities > 0).nonzero()[-1]))


# The filters of `probabilities`, in order: one line more is one filter more (docs/recipes.md).
FILTERS = (
    lambda logits, params: top_k_filter(logits, params.top_k),
    lambda logits, params: top_p_filter(logits, params.top_p),
    lambda logits, params: min_p_filter(logits, params.min_p),
)
