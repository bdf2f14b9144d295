"""Regexes of tokenizer.json: what is let through cuts as Oniguruma cuts it, what may not is refused when it is loaded."""

from __future__ import annotations

import pytest
from tokenizers import Regex, pre_tokenizers

from llmcourse.errors import TokenizerError
from llmcourse.text.oniguruma import CATEGORIES, check_regex
from llmcourse.text.pattern import GPT2, Cut, read_pre_tokenizer, split
from tests.text.hf_folders import LLAMA3_REGEX, QWEN2_REGEX
from tests.text.unicode14 import ASSIGNED

DEEPSEEK = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*""" \
    r"""|\s*[\r\n]+|\s+(?!\S)|\s+"""
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")  # fmt: skip
CJK = r"[\u4e00-\u9fa5\u3040-\u309f]+|(?<=a)b|(?<!a)c|(?=d)d|\.|.++|a*?b"


def section(pattern: str) -> dict:
    return {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": True}]}


def hf_split(text: str, pattern: str) -> list[str]:
    """Oracle: HF `tokenizers`, which asks Oniguruma."""
    return [text[a:b] for _, (a, b) in pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str(text)]


@pytest.mark.parametrize("pattern", [GPT2, LLAMA3_REGEX, QWEN2_REGEX, DEEPSEEK, O200K, CJK],
                         ids=["gpt2", "llama3", "qwen2", "deepseek", "o200k", "cjk"])
def test_patterns_of_well_known_models_are_let_through_and_cut_alike(pattern):
    read_pre_tokenizer(section(pattern))
    for start in range(0, len(ASSIGNED), 5000):
        text = "".join(f"a{c}b  {c}2\n'{c} bA{c}" for c in ASSIGNED[start:start + 5000])
        assert split(text, (Cut(pattern),)) == hf_split(text, pattern), f"from U+{ord(ASSIGNED[start]):04X}"


@pytest.mark.parametrize("escape", [*(rf"\p{{{name}}}" for name in CATEGORIES), r"\P{L}", r"\s", r"\S", r"\d", "."])
def test_every_class_of_characters_that_is_let_through_holds_the_same_characters(escape):
    check_regex(escape)
    text = "".join(ASSIGNED).replace("\u0295", "")  # a lower-case letter until Unicode 15, another letter since
    assert split(text, (Cut(escape),)) == hf_split(text, escape)


@pytest.mark.parametrize(("pattern", "part"), [
    ("^a", r"'\^a'"), ("a$", r"'\$'"), (r"\h+", "h"), (r"\Ra", "R"), (r"\w+", "w"), (r"\bend", "b"), (r"a\Z", "Z"),
    (r"a{1,2}+", "1,2"), ("a{2}?", "2"), ("a{,2}", ","), (r"\p{Alphabetic}", "Alphabetic"), (r"\pL", "p"), (r"\p{^L}", "p"),
    ("[a&&b]", "&&"), ("[a--b]", "--"), ("[a||b]", r"\|\|"), ("[[:alpha:]]", r"\["), ("[a[b]]", r"\["), (r"[\h]", "h"),
    ("[]a]", "a"), ("[a", r"\["), ("(?i)a", r"\(\?"), ("(?i:straße)", "stra"), ("(?m:a)", r"\(\?"), ("(a)", r"\(a"),
    (r"(?<n>a)", r"\(\?"), ("a{", "{"),
])  # fmt: skip
def test_what_the_two_libraries_may_read_differently_is_refused_when_loaded(pattern, part):
    with pytest.raises(TokenizerError, match=f"holds .*{part}|does not compile"):
        read_pre_tokenizer(section(pattern))


@pytest.mark.parametrize(("pattern", "text"), [("^a", "b\na"), ("a$", "a\nb"), (r"\h", "a \t"), ("a{2}+", "aaaa")])
def test_what_is_refused_is_refused_for_a_reason(pattern, text):
    """Here our library and Oniguruma do cut differently."""
    assert split(text, (Cut(pattern),)) != hf_split(text, pattern)


def test_a_regex_that_does_not_compile_is_refused_when_loaded():
    with pytest.raises(TokenizerError, match="does not compile"):
        read_pre_tokenizer(section("a)"))
