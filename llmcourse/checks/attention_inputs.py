"""What the probes of lab 03 are made from: hints, forbidden names, drawn heads, and a count of what an answer keeps."""

from __future__ import annotations

import weakref
from collections import Counter

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

HINTS = {
    "softmax": (
        "Softmax does not change when you add the same number to all scores of a row. Which number would you "
        "subtract, so that exp never sees a large one?",
        "exp(x - max) / sum of exp(x - max), with the maximum and the sum of each row; and 0 / 0 is what remains of a "
        "row that is -inf throughout.",
        "top = x.amax(-1, keepdim=True); replace a top of -inf by 0, since -inf minus -inf is NaN; powers = exp(x - "
        "top); divide by powers.sum(-1, keepdim=True). That sum is at least 1, except in a row without anything: "
        "clamp it from below.",
    ),
    "causal_mask": (
        "Which position in the text does query 0 have, if the queries are the last n_query of n_key tokens?",
        "Query i stands at position n_key - n_query + i; key j is visible when j <= that position.",
        "Refuse n_query > n_key. positions = arange(n_key - n_query, n_key); then torch.arange(n_key) <= "
        "positions[:, None] is the whole mask: a row for each query, a column for each key.",
    ),
    "attention": (
        "Four steps: scores, mask, softmax, mix. What must a hidden score become, so that softmax makes it 0?",
        "softmax over the keys of (q · kᵀ · scale, with -inf where the mask is False), times v.",
        "scores = q @ k.T * scale, one row for each query; scores.masked_fill(~mask, -inf); your softmax along the "
        "last axis; the weights @ v.",
    ),
    "grouped_attention": (
        "You have one head already. Which key/value head does query head h read, and which mask fits n_past?",
        "For each h: attention(q[:, h], k[:, h // group], v[:, h // group], mask, 1/√D), where group = Hq / Hkv and "
        "the mask is causal_mask(n, n_past + n). D is q.shape[-1].",
        "group = q.shape[1] // k.shape[1]; make the mask once; call attention for each query head; torch.stack the "
        "results along axis 1. Without a loop: k.repeat_interleave(group, dim=1), and einsum.",
    ),
    "online_attention": (
        "Take one query and two blocks. What do you know after the first, and how must it change if the second has a "
        "larger score?",
        "new = max(old, the block's largest score); shrink = exp(old - new); p = exp(scores - new); sum = sum · "
        "shrink + Σp; mix = mix · shrink + p · v; in the end mix / sum. Every query has its own.",
        "Start with maximum -inf, sum 0 and mix 0, for each query: [n, 1], [n, 1], [n, D]. For start in range(0, T, "
        "block): scores of q with k[start : start + block], times 1/√D; then the five assignments of hint 2. "
        "exp(-inf) is 0, so the first block needs no special case.",
    ),
}

_SOFTMAX = tuple(
    f"{owner}.{name}"
    for owner in ("torch", "torch.Tensor", "torch.nn.functional", "torch.special")
    for name in ("softmax", "log_softmax", "logsumexp", "softmin")
)
ATTENTION = (
    "torch.nn.functional.scaled_dot_product_attention", "torch._C._nn.scaled_dot_product_attention",
    "torch.nn.functional.multi_head_attention_forward", "torch.nn.MultiheadAttention", "torch.nn.attention",
    "llmcourse.ops", "llmcourse.model", "transformers",
)  # fmt: skip
SOFTMAX = (*_SOFTMAX, "torch.nn.Softmax", "torch.nn.LogSoftmax", *ATTENTION)
OUT_OF_SIGHT = ("torch.Tensor.numpy", "torch.Tensor.__array__", "torch.Tensor.tolist")  # where `Kept` cannot look


def heads(rng, n: int, T: int, n_heads: int, n_kv_heads: int, size: int):
    """q [n, Hq, D], k and v [T, Hkv, D], drawn from a standard normal distribution."""
    return rng.normal(n, n_heads, size), rng.normal(T, n_kv_heads, size), rng.normal(T, n_kv_heads, size)


def head(rng, n: int, T: int, size: int, spread: float = 1.0):
    """q [n, D], k and v [T, D] of a single head; scores are `spread` times as large as those of normal numbers."""
    return spread * rng.normal(n, size), rng.normal(T, size), rng.normal(T, size)


def whole(rng, most: int, *shape: int) -> Tensor:
    """Whole numbers in [-most, most], as floats: their products and sums are exact, in whatever order an answer takes them.

    Large scores are made from these, with a head size of 4, whose root is exact too: a score of 800 with a rounding
    error of its own would change a weight by more than the tolerance.
    """
    return rng.integers(-most, most + 1, *shape).float()


def some_mask(rng, n: int, T: int) -> Tensor:
    """A bool mask [n, T] in which every query may see something, and none sees all."""
    mask = rng.uniform(n, T) < 0.5
    for i in range(n):
        seen, hidden = rng.sample(range(T), 2)
        mask[i, seen], mask[i, hidden] = True, False
    return mask


class Kept(TorchFunctionMode):
    """While active, follows every tensor that was made from `source` and counts how many numbers they hold at once.

    `now` is that count, `most` the largest that it was; copies of other inputs do not count.
    """

    def __init__(self, source: Tensor):
        super().__init__()
        self._source = _place(source)
        self._tensors_at = Counter({self._source: 1})  # how many tensors that were made from the source lie at a place
        self._references: dict[int, weakref.ref] = {}
        self.now = self.most = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        made_from_it = any(self._tensors_at[_place(one)] for one in _tensors((args, kwargs)))
        result = function(*args, **kwargs)
        if made_from_it:
            written = args[:1] if getattr(function, "__name__", "") == "__setitem__" else ()
            for one in _tensors((result, written)):
                self._follow(one)
            self.most = max(self.most, self.now)
        return result

    def compared_with(self, limit: int) -> str:
        """In words, the same for all that stayed below the limit."""
        return f"fewer than {limit} numbers kept at once" if self.most < limit else f"{self.most} numbers kept at once"

    def _follow(self, tensor: Tensor) -> None:
        """Count what is stored where this tensor lies until it and all others that lie there are gone."""
        place, size = _place(tensor), tensor.untyped_storage().nbytes() // tensor.element_size()

        def gone(reference: weakref.ref) -> None:
            del self._references[id(reference)]
            self._tensors_at[place] -= 1
            self.now -= size if not self._tensors_at[place] else 0

        self.now += size if not self._tensors_at[place] else 0
        self._tensors_at[place] += 1
        reference = weakref.ref(tensor, gone)
        self._references[id(reference)] = reference


class LateKeys(TorchFunctionMode):
    """While active, makes the last `late` rows of the keys much larger, in place, when exp is taken for the first time.

    An answer in one pass has not looked at them yet. One that went through all keys for their maximum before now takes
    exp of scores far above that maximum, which is infinite. Keys that were copied beforehand stay as they were.
    """

    LOUDER = 500.0

    def __init__(self, keys: Tensor, late: int):
        super().__init__()
        self._keys, self._late = keys, late

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if self._late and getattr(function, "__name__", "").rstrip("_") in ("exp", "exp2", "expm1"):
            self._keys[-self._late :] += self.LOUDER
            self._late = 0
        return result


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _tensors(value: object) -> list[Tensor]:
    """All tensors in nested lists, tuples and dicts."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    return [one for part in value for one in _tensors(part)] if isinstance(value, (list, tuple)) else []
