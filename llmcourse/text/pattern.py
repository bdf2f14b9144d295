"""Pre-tokenization: cutting text into pieces that no token may span.

BPE merges inside a piece and never across pieces, so the cut decides what can become a token: with the patterns
below a token is a word with its leading space, or a run of punctuation, or some spaces, but never half of two words.

A pattern is a tuple of stages. The first stage cuts the text, the next one cuts every piece of the first, and so on:
SmolLM2 sets every digit apart first and applies GPT-2's cut to what lies between. Nothing is lost: the pieces joined
are the text (a stage with `prefix_space` adds a space, and says so).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex

from llmcourse.errors import TokenizerError


@dataclass(frozen=True)
class Stage:
    """One cut. Every match of `regex` becomes a piece, and so does the text between two matches.

    regex: a pattern of the `regex` library, or None to leave the pieces whole.
    prefix_space: put a space before a piece that does not start with one, before cutting it.
    """

    regex: str | None
    prefix_space: bool = False


_ENGLISH_ENDINGS = r"'(?:[sdmt]|ll|re|ve)"  # the ends of it's, I'd, I'm, don't, I'll, we're, I've
_SPACES = r"\s+(?!\S)|\s+"  # spaces before a word leave the last one to the word

GPT2 = rf"{_ENGLISH_ENDINGS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_SPACES}"
ONE_DIGIT = r"\p{N}"


def _llama3(digits: str) -> str:
    """Llama 3's cut: a word may start with any one symbol, a line break ends a piece, `digits` are one piece."""
    word, symbols = r"[^\r\n\p{L}\p{N}]?\p{L}+", r" ?[^\s\p{L}\p{N}]+[\r\n]*"
    return rf"(?i:{_ENGLISH_ENDINGS})|{word}|{digits}|{symbols}|\s*[\r\n]+|{_SPACES}"


PATTERNS: dict[str, tuple[Stage, ...]] = {
    "smollm2": (Stage(ONE_DIGIT), Stage(GPT2)),
    "gpt2": (Stage(GPT2),),
    "llama3": (Stage(_llama3(r"\p{N}{1,3}")),),
    "qwen2": (Stage(_llama3(r"\p{N}")),),
}


def split(text: str, pattern: str | Sequence[Stage] = "smollm2") -> list[str]:
    """Cut `text` into pieces, none of them empty. `pattern` is a name in `PATTERNS`, or stages of one's own.

    Example: split("It's 12  cats", "smollm2") == ["It", "'s", " ", "1", "2", " ", " cats"].
    Raises TokenizerError for an unknown name, or a regex that does not compile.
    """
    pieces = [text]
    for stage in stages_of(pattern):
        if stage.prefix_space:
            pieces = [piece if piece.startswith(" ") else " " + piece for piece in pieces]
        if stage.regex is not None:
            cut = _compile(stage.regex).split
            pieces = [part for piece in pieces for part in cut(piece) if part]
    return pieces if text else []


def stages_of(pattern: str | Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages of a named pattern; stages are handed back as they are. Raises TokenizerError for an unknown name."""
    if not isinstance(pattern, str):
        return tuple(pattern)
    if pattern not in PATTERNS:
        raise TokenizerError(f"unknown pattern {pattern!r}; choose one of {', '.join(PATTERNS)}, or pass Stage objects")
    return PATTERNS[pattern]


@lru_cache(maxsize=64)
def _compile(pattern: str) -> regex.Pattern:
    # Inside one group, `split` gives the matches too, not only what lies between them. V1 allows sets within sets.
    try:
        compiled = regex.compile(f"({pattern})", regex.V1)
    except regex.error as error:
        raise TokenizerError(f"the pre-tokenization regex {pattern!r} does not compile: {error}") from error
    if compiled.groups > 1:
        raise TokenizerError(f"the pre-tokenization regex {pattern!r} has a capturing group; write it as (?:…)")
    return compiled


def without_surrogates(text: str) -> str:
    """`text` as proper Unicode: two surrogates that form a character become it, lone ones become U+FFFD.

    Python strings may hold surrogates (from JSON escapes, file names), but UTF-8, and so every token, cannot.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def read_pre_tokenizer(section: dict | None) -> tuple[Stage, ...]:
    """The "pre_tokenizer" section of a Hugging Face tokenizer.json as stages.

    Knows Sequence, Digits, Split (Isolated) and ByteLevel, which must come last, since from there on the text is
    bytes. Raises TokenizerError naming anything else.
    """
    parts = list(_flatten(section, "pretokenizers"))
    kinds = [part["type"] for part in parts]
    if kinds.count("ByteLevel") != 1 or kinds[-1] != "ByteLevel":
        found = ", ".join(kinds) or "nothing"
        raise TokenizerError(f"the pre_tokenizer must end in its only ByteLevel, this one has: {found}; "
                             "only byte-level BPE vocabularies are supported")
    return tuple(_read_stage(part) for part in parts)


def read_normalizer(section: dict | None) -> str | None:
    """The "normalizer" section of tokenizer.json: "NFC" or None. Raises TokenizerError naming any other."""
    kinds = {part["type"] for part in _flatten(section, "normalizers")}
    if kinds - {"NFC"}:
        raise TokenizerError(f"the normalizer {', '.join(sorted(kinds - {'NFC'}))} is not supported; only NFC, or none")
    return "NFC" if kinds else None


def normalize(text: str, form: str | None) -> str:
    """`text` in the Unicode normal form `form` ("NFC"), or as it is for None."""
    return unicodedata.normalize(form, text) if form else text


def _flatten(section: dict | None, children: str) -> Iterator[dict]:
    """The sections inside nested Sequences, in order."""
    if section is None:
        return
    if section["type"] != "Sequence":
        yield section
        return
    for child in section[children]:
        yield from _flatten(child, children)


def _read_stage(part: dict) -> Stage:
    kind = part["type"]
    if kind == "Digits":
        return Stage(ONE_DIGIT if part["individual_digits"] else ONE_DIGIT + "+")
    if kind == "ByteLevel":
        return Stage(GPT2 if part.get("use_regex", True) else None, part["add_prefix_space"])
    if kind != "Split":
        raise TokenizerError(f"the pre_tokenizer {kind} is not supported; only Sequence, Digits, Split and ByteLevel")
    if part["behavior"] != "Isolated" or part.get("invert", False):
        how = part["behavior"] + (", inverted" if part.get("invert", False) else "")
        raise TokenizerError(f"the pre_tokenizer Split ({how}) is not supported; only Isolated, not inverted")
    (form, pattern), = part["pattern"].items()
    return Stage(pattern if form == "Regex" else regex.escape(pattern))
