"""What several measurements share."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1)
def engine():
    """An engine with the default model, loaded once."""
    from llmcourse import Engine

    return Engine()


@lru_cache(maxsize=1)
def english() -> str:
    """A page of English that the default model has not seen: the newest speech of the course's corpus."""
    from llmcourse.text.corpus import speeches

    return speeches()["2026-Trump-1"]
