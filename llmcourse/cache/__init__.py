"""KV caches, all with one interface: open, update, close (docs/parts.md)."""

from __future__ import annotations

from llmcourse.cache.contiguous import ContiguousCache, NoCache

CACHES = {"contiguous": ContiguousCache, "none": NoCache}

__all__ = ["CACHES", "ContiguousCache", "NoCache"]
