"""Caches used by hand, without an engine."""

from __future__ import annotations


def opened(cache, capacity: int, known: int | None = None) -> int:
    """The slot of a new request of at most `capacity` tokens, with room for those that are known (None: for all)."""
    slot, n_found = cache.open(range(capacity if known is None else known), capacity)
    assert n_found == 0
    return slot
