"""KV caches, all with one interface (docs/parts.md): open, reserve, update, close. `make_cache("int8", …)` makes one by its spec."""

from __future__ import annotations

from llmcourse.cache.base import KVCache
from llmcourse.cache.contiguous import ContiguousCache, NoCache
from llmcourse.cache.quantized import QuantizedCache, Scheme
from llmcourse.cache.sliding import SlidingWindowCache
from llmcourse.cache.specs import FORMS, parse_spec


def make_cache(spec: str, config, dtype, device):
    """The cache that `spec` names; its `.spec` is that text.

    "contiguous" keeps everything, "none" nothing. "int8" and "int4" quantize, "int4:token/32" with groups of 32 channels,
    "int4:channel/32" with keys in groups of 32 tokens. "window:1024+4" keeps the newest 1,024 tokens and the first 4.

    Raises ValueError naming a spec that is not known, and the forms.
    """
    kind, settings = parse_spec(spec)
    cache = _KINDS[kind](config, dtype, device, **settings)
    cache.spec = spec
    return cache


def _quantized(config, dtype, device, **scheme) -> QuantizedCache:
    return QuantizedCache(config, dtype, device, Scheme(**scheme))


_KINDS = {"contiguous": ContiguousCache, "none": NoCache, "window": SlidingWindowCache, "quantized": _quantized}

__all__ = [
    "FORMS", "ContiguousCache", "KVCache", "NoCache", "QuantizedCache", "Scheme", "SlidingWindowCache", "make_cache", "parse_spec",
]  # fmt: skip
