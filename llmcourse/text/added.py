"""Added tokens: texts such as `<|im_end|>` or `<think>` that are one token, whatever the merges would make of them.

A special one (`<|im_end|>`) steers the model: it says who speaks and when a turn ends. Typed by a user it must stay
plain text, so special tokens are matched only where the caller asks for it. The others (`<think>`) are always matched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from llmcourse.errors import TokenizerError

# Unicode's White_Space, as HF `tokenizers` means it; Python's own \s and strip() also take U+001C to U+001F.
_WHITE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_SPACES = re.compile(f"[{_WHITE}]*")


@dataclass(frozen=True)
class AddedToken:
    """One entry of "added_tokens" in tokenizer.json.

    special: matched on request only. normalized: matched after normalization instead of before.
    lstrip, rstrip: swallows the white space on its left, on its right.
    """

    id: int
    content: str
    special: bool = True
    normalized: bool = False
    lstrip: bool = False
    rstrip: bool = False

    @classmethod
    def from_json(cls, entry: dict) -> AddedToken:
        """Read one entry. Raises TokenizerError for `single_word`, which is not supported."""
        if entry.get("single_word", False):
            raise TokenizerError(f"the added token {entry['content']!r} has single_word=true, which is not supported")
        return cls(*(entry[name] for name in ("id", "content", "special", "normalized", "lstrip", "rstrip")))


def any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """A regex that finds the leftmost of some literal texts, and the longest of those that start at the same place."""
    longest_first = sorted(texts, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")  # (?!) never matches


class Cutter:
    """Cuts text at added tokens. tokens: the text to look for → its token."""

    def __init__(self, tokens: Mapping[str, AddedToken]):
        self._tokens = dict(tokens)
        self._regex = any_of(self._tokens)
        self._all_special = all(token.special for token in self._tokens.values())

    def cut(self, text: str, special: bool) -> Iterator[str | int]:
        """The text between the added tokens (never empty) and, in their places, their ids.

        special: False leaves special tokens in the text.
        """
        start = 0
        matches = self._regex.finditer(text) if special or not self._all_special else ()
        for match in matches:
            token = self._tokens[match.group()]
            if token.special and not special:
                continue
            before = text[start:match.start()]
            yield from filter(None, [before.rstrip(_WHITE) if token.lstrip else before])
            yield token.id
            start = _SPACES.match(text, match.end()).end() if token.rstrip else match.end()
        if start < len(text):
            yield text[start:]
