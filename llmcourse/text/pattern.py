"""Pre-tokenization: cutting text into pieces that no token may span.

BPE merges inside a piece and never across pieces, so the cut decides what can become a token: with the patterns
below a token is a word with its leading space, or a run of punctuation, or some spaces, but never half of two words.

A pattern is a tuple of stages. The first stage cuts the text, the next one cuts every piece of the first, and so on:
SmolLM2 sets every digit apart first and applies GPT-2's cut to what lies between. Nothing is lost: the pieces joined
are the text (a stage with `prefix_space` adds a space, and says so).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex

from llmcourse.errors import TokenizerError
from llmcourse.text.normal import flatten
from llmcourse.text.oniguruma import check_regex


@dataclass(frozen=True)
class Cut:
    """One cut. Every match of `regex` becomes a piece, and so does the text between two matches.

    regex: a pattern of the `regex` library, or None to leave the pieces whole.
    prefix_space: put a space before a piece that does not start with one, before cutting it.
    """

    regex: str | None
    prefix_space: bool = False


@dataclass(frozen=True)
class Metaspace:
    """SentencePiece's own stage: spaces become "▁", and one may be put before the text. It stands alone.

    prepend: "always" puts "▁" before every text between added tokens that does not start with one, "first" only where
        nothing stands before it, "never" nowhere.
    words: whether each "▁" begins a new piece; if not, the whole text is one.
    """

    prepend: str
    words: bool = False

    def cut(self, text: str, at_start: bool) -> list[str]:
        """The pieces of one text. at_start: whether nothing stands before it, not even an added token."""
        text = text.replace(" ", "\u2581")
        if not text.startswith("\u2581") and (self.prepend == "always" or (self.prepend == "first" and at_start)):
            text = "\u2581" + text
        return regex.findall("\u2581[^\u2581]*|[^\u2581]+", text) if self.words else [text]


_ENGLISH_ENDINGS = r"'(?:[sdmt]|ll|re|ve)"  # the ends of it's, I'd, I'm, don't, I'll, we're, I've
_SPACES = r"\s+(?!\S)|\s+"  # spaces before a word leave the last one to the word

GPT2 = rf"{_ENGLISH_ENDINGS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_SPACES}"
ONE_DIGIT = r"\p{N}"


def _llama3(digits: str) -> str:
    """Llama 3's cut: a word may start with any one symbol, a line break ends a piece, `digits` are one piece."""
    word, symbols = r"[^\r\n\p{L}\p{N}]?\p{L}+", r" ?[^\s\p{L}\p{N}]+[\r\n]*"
    return rf"(?i:{_ENGLISH_ENDINGS})|{word}|{digits}|{symbols}|\s*[\r\n]+|{_SPACES}"


PATTERNS: dict[str, tuple[Cut, ...]] = {
    "smollm2": (Cut(ONE_DIGIT), Cut(GPT2)),
    "gpt2": (Cut(GPT2),),
    "llama3": (Cut(_llama3(r"\p{N}{1,3}")),),
    "qwen2": (Cut(_llama3(r"\p{N}")),),
}


def split(text: str, pattern: str | Sequence[Cut | Metaspace] = "smollm2", at_start: bool = True) -> list[str]:
    """Cut `text` into pieces, none of them empty. `pattern` is a name in `PATTERNS`, or stages of one's own.
    at_start: whether nothing stands before `text` (see `Metaspace`; other stages do not ask).

    Example: split("It's 12  cats", "smollm2") == ["It", "'s", " ", "1", "2", " ", " cats"].
    Raises TokenizerError for an unknown name, or a regex that does not compile.
    """
    pieces = [text]
    for stage in cuts_of(pattern):
        if isinstance(stage, Metaspace):
            pieces = stage.cut(text, at_start)
            continue
        if stage.prefix_space:
            pieces = [piece if piece.startswith(" ") else " " + piece for piece in pieces]
        if stage.regex is not None:
            cut = _compile(stage.regex).split
            pieces = [part for piece in pieces for part in cut(piece) if part]
    return pieces if text else []


def cuts_of(pattern: str | Sequence[Cut | Metaspace]) -> tuple[Cut | Metaspace, ...]:
    """The stages of a named pattern; stages are handed back as they are. Raises TokenizerError for an unknown name."""
    if not isinstance(pattern, str):
        return tuple(pattern)
    if pattern not in PATTERNS:
        raise TokenizerError(f"unknown pattern {pattern!r}; choose one of {', '.join(PATTERNS)}, or pass Cut objects")
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


def read_pre_tokenizer(section: dict | None) -> tuple[Cut, ...]:
    """The "pre_tokenizer" section of a Hugging Face tokenizer.json as stages.

    Knows Sequence, Digits, Split (Isolated) and ByteLevel, which must come last, since from there on the text is
    bytes. Raises TokenizerError naming anything else.
    """
    parts = list(flatten(section, "pretokenizers"))
    kinds = [part["type"] for part in parts]
    if kinds.count("ByteLevel") != 1 or kinds[-1] != "ByteLevel":
        found = ", ".join(kinds) or "nothing"
        raise TokenizerError(f"the pre_tokenizer must end in its only ByteLevel, this one has: {found}; "
                             "only byte-level BPE vocabularies are supported")
    return tuple(_read_cut(part) for part in parts)


def read_metaspace(section: dict | None) -> tuple[Metaspace, ...]:
    """The "pre_tokenizer" section of a SentencePiece-style tokenizer.json: Metaspace, or nothing at all.

    Raises TokenizerError naming anything else.
    """
    parts = list(flatten(section, "pretokenizers"))
    if not parts:
        return ()
    part, kinds = parts[0], [part["type"] for part in parts]
    if kinds != ["Metaspace"] or part["replacement"] != "\u2581":
        raise TokenizerError(f"the pre_tokenizer of a vocabulary with byte_fallback is {', '.join(kinds)}; only Metaspace "
                             "with \u2581, or none, is supported")
    # Files of 2023 and before say add_prefix_space instead, and cut into words.
    scheme = part.get("prepend_scheme") or ("always" if part.get("add_prefix_space", True) else "never")
    if scheme not in ("always", "first", "never"):
        raise TokenizerError(f"the pre_tokenizer Metaspace has prepend_scheme {scheme!r}; only always, first and never")
    return (Metaspace(scheme, words=part.get("split", True)),)


def _read_cut(part: dict) -> Cut:
    kind = part["type"]
    if kind == "Digits":
        return Cut(ONE_DIGIT if part["individual_digits"] else ONE_DIGIT + "+")
    if kind == "ByteLevel":
        return Cut(GPT2 if part.get("use_regex", True) else None, part["add_prefix_space"])
    if kind != "Split":
        raise TokenizerError(f"the pre_tokenizer {kind} is not supported; only Sequence, Digits, Split and ByteLevel")
    if part["behavior"] != "Isolated" or part.get("invert", False):
        how = part["behavior"] + (", inverted" if part.get("invert", False) else "")
        raise TokenizerError(f"the pre_tokenizer Split ({how}) is not supported; only Isolated, not inverted")
    (form, pattern), = part["pattern"].items()
    if form != "Regex":
        return Cut(regex.escape(pattern))
    check_regex(pattern)
    _compile(pattern)
    return Cut(pattern)
