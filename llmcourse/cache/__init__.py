"""KV caches, all with one interface: open, update, close (docs/parts.md). `make_cache("contiguous", …)` makes one by name."""

from __future__ import annotations

from llmcourse.cache.contiguous import ContiguousCache, NoCache

CACHES = {"contiguous": ContiguousCache, "none": NoCache}


def make_cache(spec: str, config, dtype, device):
    """The cache that `spec` names: "contiguous", or "none" to keep nothing. Its `.spec` is that text.

    Raises ValueError naming a spec that is not known, and those that are.
    """
    if spec not in CACHES:
        raise ValueError(f"cache must be one of {', '.join(CACHES)}, got {spec!r}")
    cache = CACHES[spec](config, dtype, device)
    cache.spec = spec
    return cache


__all__ = ["CACHES", "ContiguousCache", "NoCache", "make_cache"]
