"""The article's statements, one by one, measured on this machine: `llmcourse claims`.

The course grew out of a popular article. Every statement in it that can be tested is an entry here, in our words, with
the lesson that tests it. One module a lesson, named like the lesson's checks.
"""

from __future__ import annotations

from .ledger import CORRECTED, FAILS, HOLDS, Claim, Finding, Found, claim, claims

__all__ = ["CORRECTED", "FAILS", "HOLDS", "Claim", "Finding", "Found", "claim", "claims"]
