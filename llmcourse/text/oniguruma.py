"""Which regexes mean the same to Oniguruma, for which tokenizer.json files are written, and to our `regex` library.

The two differ in small things that would cut a text elsewhere without any error: to Oniguruma `^` and `$` stand at
every line, `\\h` is a hex digit and `a{2}+` is not possessive; to `regex` they are the whole text, a blank, and
possessive. So a pattern is read here, part by part, and what is not known to mean the same is refused when it is loaded.
The tests compare what is let through with Oniguruma on every assigned character.
"""

from __future__ import annotations

import re

from llmcourse.errors import TokenizerError

CATEGORIES = (
    "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp "
    "Han Hiragana Katakana Hangul Latin Cyrillic Greek Arabic Hebrew Thai Devanagari"
).split()
_PART = re.compile(r"""
      (?P<escape> \\[pP]\{(?P<name>\w+)\} | \\[sSdrntfv] | \\u[0-9A-Fa-f]{4} | \\[^\w\s] )
    | (?P<endings> \(\?i: (?P<inside> [^()\\^$]* ) \) )
    | (?P<open> \(\?(?: [:=!>] | <[=!] ) )
    | (?P<times> \{\d+(?:,\d*)?\} )
    | (?P<set> \[\^? )
    | (?P<plain> [^\\^$(){}\[] )
    | (?P<close> \) )
    """, re.VERBOSE | re.DOTALL)  # fmt: skip
_IN_SET = re.compile(r"(?P<escape>\\[pP]\{(?P<name>\w+)\}|\\[sSdrntfv]|\\u[0-9A-Fa-f]{4}|\\[^\w\s])|(?P<plain>[^\\\[\]])",
                     re.DOTALL)  # fmt: skip
_SET_OPERATORS = ("&&", "||", "--", "~~")
_ENDING_LETTERS = set("sdmtrevlSDMTREVL'\u2019|?:[]")  # no two of them fold to one character, such as ss and \u00df
_FOLDING = ("ss", "st")


def check_regex(pattern: str) -> None:
    """Raise TokenizerError, naming the part, unless `regex` is known to read `pattern` as Oniguruma does."""
    at = 0
    while at < len(pattern):
        part = _PART.match(pattern, at)
        if part is None or _odd(part, pattern):
            shown = part.group() if part else pattern[at : at + 2]
            raise _unlike(pattern, shown)
        at = part.end()
        if part["set"]:
            at = _end_of_set(pattern, at)


def _odd(part: re.Match[str], pattern: str) -> bool:
    """Whether a part that looks known is not."""
    if part["name"] and part["name"] not in CATEGORIES:
        return True
    if part["endings"]:
        inside = part["inside"]
        return not set(inside) <= _ENDING_LETTERS or any(two in inside.lower() for two in _FOLDING)
    # After {n,m} Oniguruma takes a + as "one or more of that", and after {n} a ? as "or none".
    return bool(part["times"]) and pattern[part.end() : part.end() + 1] in ("+", "?")


def _end_of_set(pattern: str, at: int) -> int:
    """The place after the bracket that closes a set whose first character stands at `at`."""
    start = at
    while not pattern.startswith("]", at) or at == start:
        part = _IN_SET.match(pattern, at)
        if part is None or (part["name"] and part["name"] not in CATEGORIES) or pattern[at : at + 2] in _SET_OPERATORS:
            raise _unlike(pattern, pattern[at : at + 2] or "[")
        at = part.end()
    return at + 1


def _unlike(pattern: str, shown: str) -> TokenizerError:
    return TokenizerError(
        f"the pre-tokenization regex {pattern!r} holds {shown!r}, which the `regex` library may read differently from "
        "Oniguruma, for which it was written; this tokenizer is not supported"
    )
