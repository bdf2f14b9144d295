"""Text from a submission, made harmless for a terminal, a table and a page: `printable(text)`."""

from __future__ import annotations

import re
import unicodedata

MAX_DETAIL = 300
_UNSEEN_KINDS = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # letters and signs without a shape
_PLAIN = re.compile(r"[\x20-\x7e]*")


def printable(text: str) -> str:
    """The text on one line, with every character that is not seen (controls, bidi, zero width) written as an escape."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(ascii(c)[1:-1] if unicodedata.category(c) in _UNSEEN_KINDS or c in _UNSEEN else c for c in text)
