"""Statements of lesson 08."""

from __future__ import annotations

from collections.abc import Mapping

from .common import engine, english
from .ledger import CORRECTED, FAILS, HOLDS, Found, claim

TOKENS, WINDOW = 320, 128
LITTLE = 0.05  # a rise of perplexity that nobody would call damage
SPECS = ("int8", "int4", f"window:{WINDOW}+1", f"window:{WINDOW}")
CONTROL = "window:8"  # forgets nearly all: where even that does no harm, harm cannot be seen
SHARED_HEADS = ("Llama-2-7B", "Llama-3-8B")  # as wide and as deep; the second shares each key/value head among four


@claim(
    "C16", "INT8 or INT4, a sliding window, shared heads (GQA) and paging shrink or tame the cache",
    lessons=("08", "11"),
    expected=f"each makes the cache smaller, and perplexity rises by less than {LITTLE:.0%}; with {CONTROL}, which "
             "forgets nearly everything, it rises by more",
    because=f"{LITTLE:.0%} of perplexity takes a twentieth of its probability from each right token, which nobody sees "
            "in a text; and a model for which nothing matters must not pass",
    how=f"default model, {TOKENS} tokens of unseen English through each cache, bytes counted at that length; shared heads: "
        f"bytes per token of {' and '.join(SHARED_HEADS)}; paging: lesson 11",
)  # fmt: skip
def smaller_caches() -> Found:
    from llmcourse.cache import make_cache
    from llmcourse.measure.known_models import MODELS
    from llmcourse.measure.memory import kv_bytes_per_token
    from llmcourse.measure.perplexity import Protocol, perplexity

    model = engine().model
    ids = engine().tokenizer.encode(english())[:TOKENS]

    def size(spec: str) -> int:
        return make_cache(spec, model.config, model.dtype, model.device).bytes_for(TOKENS)

    def surprise(spec: str) -> float:
        return perplexity(model, ids, Protocol(TOKENS, TOKENS), cache=spec).value

    whole = surprise("contiguous")
    rises = {spec: surprise(spec) / whole - 1 for spec in SPECS}
    forgetful = surprise(CONTROL) / whole - 1
    shares = {spec: size(spec) / size("contiguous") for spec in SPECS}
    before, after = (kv_bytes_per_token(MODELS[name]) for name in SHARED_HEADS)
    return judge(shares, rises, after / before, forgetful)


def judge(shares: Mapping[str, float], rises: Mapping[str, float], heads: float, forgetful: float) -> Found:
    """What the numbers say. shares: part of the bytes that is left, by spec; rises: of perplexity; heads: GQA's part.

    forgetful: the rise of perplexity with `CONTROL`, a cache that forgets nearly everything.
    The spec of a window without sinks ends without "+".
    """
    said = [f"{spec} {100 * shares[spec]:.0f} % of the bytes, perplexity {100 * rises[spec]:+.1f} %" for spec in shares]
    measured = f"{'; '.join(said)}; shared heads {100 * heads:.0f} % of the bytes"
    if heads >= 1 or any(share >= 1 for share in shares.values()):
        return Found(measured, FAILS, "one of them does not make the cache smaller")
    if not forgetful > LITTLE:
        return Found(measured, FAILS, f"harm could not be seen: even {CONTROL} raises perplexity by "
                                      f"{100 * forgetful:.1f} % only")
    harmful = {spec for spec, rise in rises.items() if rise > LITTLE}
    if not harmful:
        return Found(measured, HOLDS)
    if all(spec.startswith("window:") and "+" not in spec for spec in harmful):
        return Found(measured, CORRECTED, "a window must keep the first token as well, or the model breaks down")
    return Found(measured, CORRECTED, f"smaller, but not for free: {', '.join(sorted(harmful))}")
