"""What lab 05 is checked with: its hints, logits, and the test of a distribution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import torch

FALSE_FAILURES = 1e-6  # how often the distribution test calls a fair sampler unfair, for very many draws

HINTS = {
    "repetition_penalty": (
        "Less likely means a lower logit. Where does −1 go when you divide it by 2?",
        "new = old / penalty where old > 0, else old · penalty; for each different id of previous_ids, once.",
        "seen = torch.tensor(sorted(set(previous_ids)), dtype=torch.long). old = logits[seen]. Copy the logits with "
        "clone(), write torch.where(old > 0, old / penalty, old * penalty) at [seen], and return the copy.",
    ),
    "apply_temperature": (
        "What does softmax do with logits that all grow by the same amount?",
        "(logits − max(logits)) / temperature.",
        "One line: subtract logits.max() first, then divide. The largest becomes 0, all others are negative, and "
        "what is too negative becomes −inf, which is right: probability 0.",
    ),
    "top_k_filter": (
        "A threshold (the k-th largest logit) is not enough: what if several tokens stand exactly on it?",
        "Kept: the first k ids of a sort by logit, downwards, that leaves equal ones in order of ids (a stable sort).",
        "k == 0 returns logits. best = logits.argsort(descending=True, stable=True)[:k]. Fill a new tensor with −inf "
        "(torch.full_like), and copy logits[best] to [best]. A slice longer than the tensor does no harm.",
    ),
    "top_p_filter": (
        "Ask every token, in order of likelihood: had those before you reached p already? If not, you stay.",
        "before = cumsum(probabilities) − probabilities, sorted downwards; a token stays when before < p.",
        "p ≥ 1 returns logits. order = logits.argsort(descending=True, stable=True); probabilities = "
        "logits[order].softmax(-1); before = probabilities.cumsum(-1) − probabilities; n = max(1, number of before < "
        "p). Fill a new tensor with −inf, and copy the logits of order[:n].",
    ),
    "min_p_filter": (
        "How likely is the likeliest token? The bar is a share of that.",
        "A token stays when its probability ≥ min_p · the largest probability.",
        "probabilities = logits.softmax(-1). Return logits.masked_fill(probabilities < min_p * probabilities.max(), "
        "−inf). With min_p = 0 nothing is below the bar.",
    ),
    "sample": (
        "Do one thing after the other: is the model sane? penalty; greedy? temperature; three filters; then the stripe.",
        "id = how many tokens have a running sum ≤ u; the running sum is that of softmax after all filters, in float64.",
        "1. largest = logits.max().item(); unless math.isfinite(largest), raise NonFiniteLogits. 2. the penalty. 3. "
        "temperature 0: return int(logits.argmax()). 4. temperature, top-k, top-p, min-p, with your own functions. 5. "
        "running = logits.double().softmax(-1).cumsum(-1); return int((running <= u * running[-1]).sum()).",
    ),
}


def logits_of(*probabilities: float) -> torch.Tensor:
    """Logits [V] whose softmax is these numbers (0 gives −inf), float32."""
    return torch.tensor(probabilities, dtype=torch.float64).log().float()


def shared_places(rng, n: int, n_equal: int) -> torch.Tensor:
    """n different logits in random order, of which n_equal, at random places, have one and the same value: 0."""
    values = [0.0] * n_equal + [0.5 * (i - (n - n_equal) // 2) + 0.25 for i in range(n - n_equal)]
    return torch.tensor(rng.shuffled(values))


def chi_square(drawn: Sequence[int], expected: torch.Tensor) -> float:
    """How far counts are from their expectation: Σ (count − n·p)² / (n·p) over tokens of probability p > 0.

    drawn: n ids; expected: probabilities [V]. An id of probability 0 makes it infinite.
    """
    counts, statistic = Counter(drawn), 0.0
    for token, p in enumerate(expected.double().tolist()):
        if p > 0:
            statistic += (counts.pop(token, 0) - len(drawn) * p) ** 2 / (len(drawn) * p)
    return statistic if not counts else float("inf")


@lru_cache(maxsize=None)
def chi_square_bound(degrees: int, rate: float = FALSE_FAILURES) -> float:
    """What chi-square with so many degrees of freedom (tokens less one) exceeds with this probability.

    Found by halving an interval: the probability to exceed x is Q(degrees/2, x/2), the regularised upper gamma function.
    """
    low, high = torch.tensor(0.0, dtype=torch.float64), torch.tensor(1000.0, dtype=torch.float64)
    half = torch.tensor(degrees / 2, dtype=torch.float64)
    for _ in range(60):
        middle = (low + high) / 2
        too_low = torch.special.gammaincc(half, middle / 2) > rate
        low, high = (middle, high) if too_low else (low, middle)
    return high.item()


def fits(drawn: Sequence[int], expected: torch.Tensor) -> dict:
    """Whether draws look like this distribution, as plain data; false a few times in a million for a fair sampler."""
    bound = chi_square_bound(int((expected > 0).sum()) - 1)
    return {"draws": len(drawn), "follows the distribution": chi_square(drawn, expected) < bound}
