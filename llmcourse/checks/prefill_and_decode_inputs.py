"""What the probes of lab 06 draw, ask and say: sizes of models, times of tokens, counts, hints."""

from __future__ import annotations

from .sizes import Sizes

HINTS = {
    "forward_flops": (
        "Write down each matrix of a layer with its shape. How many multiply-adds is it for one token? Then: how many "
        "pairs of a query and a key are there?",
        "L · (2 · n · (2·d·Hq·D + 2·d·Hkv·D + 3·d·f) + 4 · Hq·D · pairs) + 2 · V · d, with "
        "pairs = n · n_past + n · (n + 1) ÷ 2.",
        "1. q = n_heads · head_dim and kv = n_kv_heads · head_dim. 2. Weights of a layer: d·q for query and for output, "
        "d·kv for key and for value, three times d·f. 3. Two FLOPs for each, times n. 4. Pairs: each of n tokens meets "
        "n_past keys; among themselves they make 1 + 2 + … + n. 5. A pair costs 2·D multiply-adds in each query head, "
        "so 4·q FLOPs. 6. Times L. 7. The output head: 2·V·d, once.",
    ),
    "forward_bytes": (
        "Which numbers must come from memory, and how often, if you could keep everything that you touch until the step "
        "is over?",
        "(all weights) · weight_bits ÷ 8 + (n_past + n) · 2 · L · Hkv · D · kv_bits ÷ 8.",
        "1. A layer: 2·d·q + 2·d·kv + 3·d·f for its matrices, 2·d for its norms. 2. Times L, plus d for the last norm, plus "
        "V·d for the output head. 3. Unless tied, plus n·d for the rows looked up. 4. Times weight_bits, by 8. 5. The "
        "cache: for each of n_past + n tokens, in each layer, a key and a value of kv numbers. 6. Times kv_bits, by 8.",
    ),
    "roofline_seconds": (
        "How long would computing take, if moving took no time? And the other way round? Which of the two do you wait for?",
        "max(flops ÷ peak_flops, bytes ÷ bandwidth).",
        "Compute both times, in seconds, and return the larger one.",
    ),
    "latency_summary": (
        "Draw the arrival and the tokens on a line. Which stretches are TTFT, which are gaps, which one is the whole?",
        "gaps = differences of neighbouring token times. Percentile p: sort; place = (m − 1) · p ÷ 100; with "
        "i = the whole part of place: gaps[i] + (place − i) · (gaps[i + 1] − gaps[i]).",
        "1. No token: raise ValueError. 2. ttft = token_times[0] − arrival. 3. gaps = sorted(b − a for each token a and the "
        "next one b). 4. Without gaps the four ITL figures are None; else their mean, and the percentiles 50, 95, 99 (mind "
        "the last place: it has no right neighbour). 5. tokens_per_s = number of tokens ÷ (last − arrival).",
    ),
}


def small_model(rng) -> Sizes:
    """Sizes that are all different, with heads that do not fill the width; tied."""
    n_kv_heads = rng.integers(2, 5)
    return Sizes(
        vocab_size=rng.integers(300, 900), width=rng.integers(150, 250), n_layers=rng.integers(6, 13),
        n_heads=n_kv_heads * rng.integers(2, 5), n_kv_heads=n_kv_heads, head_dim=rng.integers(14, 29),
        ffn_width=rng.integers(260, 290),
    )  # fmt: skip


def times_of(rng, n_tokens: int, first: float = 3.0) -> tuple[float, list[float]]:
    """An arrival, and when n tokens came: the first after about `first` seconds, the others up to two apart."""
    arrival = rng.uniform(low=100, high=900)
    times = [arrival + first * rng.uniform(low=0.8, high=1.2)]
    while len(times) < n_tokens:
        times.append(times[-1] + rng.uniform(low=0.01, high=2))
    return arrival, times


def gaps_of(rng, gaps: list[float]) -> tuple[float, list[float]]:
    """An arrival, and tokens with exactly these gaps between them."""
    arrival, times = times_of(rng, 1)
    for gap in gaps:
        times.append(times[-1] + gap)
    return arrival, times


def flops(answer, config: Sizes, n: int, past: int) -> float:
    """The answer's count, int or float."""
    return float(answer.forward_flops(config, n, past))


def moved(answer, config: Sizes, n: int, past: int, weight_bits: float = 8, kv_bits: float = 0) -> float:
    """The answer's bytes, int or float; without a cache unless its bits are given."""
    return float(answer.forward_bytes(config, n, past, weight_bits, kv_bits))


def wider_by(answer, config: Sizes, more: int, n: int, weight_bits: float = 8) -> float:
    """Bytes that the feed-forward matrices gain when f grows by `more`."""
    wide = config.with_(ffn_width=config.ffn_width + more)
    return moved(answer, wide, n, 6, weight_bits) - moved(answer, config, n, 6, weight_bits)


def longer_by(answer, config: Sizes, past: int, more: int, kv_bits: float) -> float:
    """Bytes that a past gains when it grows by `more`."""
    return moved(answer, config, 2, past + more, 8, kv_bits) - moved(answer, config, 2, past, 8, kv_bits)
