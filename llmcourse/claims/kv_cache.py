"""Statements of lesson 07."""

from __future__ import annotations

from .common import engine
from .ledger import CORRECTED, FAILS, HOLDS, Found, claim

LENGTHS = (16, 64, 128, 256, 512)
GAIN = 5


@claim(
    "C13", "the KV cache makes long generations five times faster or more",
    lessons=("07",), expected="a whole text of up to 512 tokens, from its first token on, comes 5 times sooner",
    how=f"default model, one step at {', '.join(map(str, LENGTHS))} tokens with a cache and without, straight lines between; "
    "a text is the sum of its steps",
)  # fmt: skip
def the_cache_is_five_times_faster() -> Found:
    from llmcourse.measure.steps import step_seconds

    model = engine().model
    cached = {n: step_seconds(model, n, cached=True, runs=7) for n in LENGTHS}  # first: its warm-ups warm all weights
    without = {n: step_seconds(model, n, cached=False, runs=2, warm_up=0) for n in LENGTHS}
    return gain_of_the_cache(without, cached)


def gain_of_the_cache(without: dict[int, float], cached: dict[int, float]) -> Found:
    """The verdict on C13 from seconds by length."""
    from llmcourse.measure.steps import first_length, text_seconds

    last = max(without)
    step, whole = first_length(without, cached, GAIN), first_length(without, cached, GAIN, whole=True)
    gain = text_seconds(without, last) / text_seconds(cached, last)
    measured = (f"the step at {last} tokens {without[last] / cached[last]:.1f}× faster, a text of {last} tokens {gain:.1f}×; "
                f"{GAIN}× for a step {_from(step)}, for a text {_from(whole)}")  # fmt: skip
    if whole is not None:
        return Found(measured, HOLDS)
    if step is not None:
        return Found(measured, CORRECTED, f"for single steps; whole texts of up to {last} tokens gain less")
    return Found(measured, FAILS, f"not up to {last} tokens")


def _from(length: int | None) -> str:
    return "at no length measured" if length is None else f"from {length} tokens on"


@claim(
    "C14", "a 13B model's cache takes about 1 MB per token and 4 GB at 4K tokens",
    lessons=("07",), expected="1 MB per token and 4 GB at 4,096 tokens, to within a tenth",
    how="Llama-2-13B: 2 (keys, values) · 40 layers · 40 heads · 128 · 2 bytes (16 bits)",
)  # fmt: skip
def a_13b_models_cache() -> Found:
    from llmcourse.measure.known_models import MODELS
    from llmcourse.measure.memory import kv_bytes, kv_bytes_per_token

    llama = MODELS["Llama-2-13B"]
    token, at_4k = kv_bytes_per_token(llama), kv_bytes(llama, 4096)
    measured = f"{token:,.0f} bytes per token ({token / 1e6:.2f} MB), {at_4k / 1e9:.2f} GB at 4,096 tokens"
    if abs(token / 1e6 - 1) < 0.1 and abs(at_4k / 4e9 - 1) < 0.1:
        return Found(measured, HOLDS)
    return Found(measured, CORRECTED, f"rounded up: {1e6 / token:.2f} times per token, {4e9 / at_4k:.2f} times at 4K")


@claim(
    "C15", "doubling the context starves the batch",
    lessons=("07", "12"), expected="twice the context, half the requests that fit",
    how="Llama-2-13B at 16 bits on a card with 80 GB, counted; and bytes that this engine's cache reserves, looked at",
)  # fmt: skip
def doubling_the_context_halves_the_batch() -> Found:
    from llmcourse.cache import ContiguousCache
    from llmcourse.measure.known_models import MODELS
    from llmcourse.measure.memory import requests_that_fit

    contexts = (2048, 4096, 8192, 16_384)
    fit = [requests_that_fit(MODELS["Llama-2-13B"], 80e9, context) for context in contexts]
    model, reserved = engine().model, []
    for context in contexts[:2]:
        cache = ContiguousCache(model.config, model.dtype, model.device, first_tokens=context)
        slot = cache.slots[cache.open([1], context)[0]]
        reserved.append(slot.keys.nbytes + slot.values.nbytes)
    each = ", ".join(f"{n} requests of {context:,} tokens" for n, context in zip(fit, contexts))
    measured = (f"{each}; here a request of {contexts[1]:,} tokens reserves {reserved[1] / reserved[0]:g} times as much "
                f"as one of {contexts[0]:,}")  # fmt: skip
    halved = all(more // 2 == fewer for more, fewer in zip(fit, fit[1:])) and reserved[1] == 2 * reserved[0]
    return Found(measured, HOLDS if halved else FAILS)
