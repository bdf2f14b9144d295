"""Pre-tokenization: what is cut where, nothing lost, and tokenizer.json's sections read or refused by name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from llmcourse.errors import TokenizerError
from llmcourse.text.pattern import (
    PATTERNS, Cut, read_pre_tokenizer, split, without_surrogates)
from llmcourse.text.normal import normalize, read_normalizer
from tests.text.hf_folders import ENGLISH, LLAMA3_REGEX, QWEN2_REGEX
from tests.text.unicode14 import ASSIGNED, texts

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
HF = {
    "smollm2": pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
    "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "llama3": pre_tokenizers.Split(Regex(LLAMA3_REGEX), "isolated"),
    "qwen2": pre_tokenizers.Split(Regex(QWEN2_REGEX), "isolated"),
}  # fmt: skip


def hf_split(text: str, pattern: str) -> list[str]:
    """Oracle: the pieces that HF `tokenizers` cuts, from its offsets (it shows bytes as letters)."""
    return [text[start:end] for _, (start, end) in HF[pattern].pre_tokenize_str(text)]


@pytest.mark.parametrize(("text", "pieces"), [
    ("a  12", ["a", "  ", "1", "2"]),
    ("\n\n1", ["\n\n", "1"]),
    ("½ cup  ½", ["½", " cup", "  ", "½"]),
    ("It's 3 cats", ["It", "'s", " ", "3", " cats"]),
])  # fmt: skip
def test_smollm2_sets_every_numeric_character_apart_before_it_cuts_words(text, pieces):
    assert split(text, "smollm2") == pieces


def test_gpt2_keeps_a_space_with_the_number_behind_it():
    assert split("a  12", "gpt2") == ["a", " ", " 12"]


def test_llama3_takes_digits_by_threes_and_qwen2_one_by_one():
    assert split("12345", "llama3") == ["123", "45"]
    assert split("123", "qwen2") == ["1", "2", "3"]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=texts())
def test_pieces_equal_those_of_hf_tokenizers(pattern, text):
    assert split(text, pattern) == hf_split(text, pattern)


@pytest.mark.parametrize("pattern", ["smollm2", "llama3"])
def test_every_assigned_character_is_cut_as_hf_tokenizers_cuts_it(pattern):
    for start in range(0, len(ASSIGNED), 2000):
        text = "".join(f"a{c}b  {c}2\n" for c in ASSIGNED[start:start + 2000])
        assert split(text, pattern) == hf_split(text, pattern), f"in the block from U+{ord(ASSIGNED[start]):04X}"


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=texts())
def test_pieces_joined_are_the_text_and_none_is_empty(pattern, text):
    pieces = split(text, pattern)
    assert "".join(pieces) == text
    assert all(pieces)


def test_stages_of_ones_own_keep_the_text_between_matches():
    assert split("ab-cd--e", (Cut("-"),)) == ["ab", "-", "cd", "-", "-", "e"]


@given(text=texts(20))
def test_prefix_space_puts_a_space_before_every_piece_of_the_stage_before_it(text):
    section = {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": False}, {**BYTE_LEVEL, "add_prefix_space": True}]}
    theirs = pre_tokenizers.Sequence([pre_tokenizers.Digits(False), pre_tokenizers.ByteLevel(add_prefix_space=True)])
    n_bytes = [len(piece.encode()) for piece in split(text, read_pre_tokenizer(section))]
    assert n_bytes == [len(letters) for letters, _ in theirs.pre_tokenize_str(text)]


@pytest.mark.parametrize("pattern", ["smolm2", ""])
def test_an_unknown_name_is_refused_with_the_known_ones(pattern):
    with pytest.raises(TokenizerError, match="smollm2, gpt2, llama3, qwen2"):
        split("a", pattern)


@pytest.mark.parametrize(("broken", "why"), [("(a", "does not compile"), ("(a)b", "capturing group")])
def test_a_regex_that_cannot_be_used_is_named(broken, why):
    with pytest.raises(TokenizerError, match=why):
        split("ab", (Cut(broken),))


@pytest.mark.parametrize("section", [
    BYTE_LEVEL,
    {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL]},
    {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": LLAMA3_REGEX}, "behavior": "Isolated", "invert": False},
        {**BYTE_LEVEL, "use_regex": False}]},
    {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"String": "(+)"}, "behavior": "Isolated", "invert": False},
        {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": False}, BYTE_LEVEL]}]},
])  # fmt: skip
def test_a_section_of_tokenizer_json_cuts_as_hf_tokenizers_reads_it(section):
    theirs = _hf_from_section(section)
    text = "(+) It's  12345 (+)9 cats\r\n\n  " + ENGLISH[:20_000]
    assert split(text, read_pre_tokenizer(section)) == [text[a:b] for _, (a, b) in theirs.pre_tokenize_str(text)]


def _hf_from_section(section: dict):
    """HF reads a section only as part of a whole tokenizer.json."""
    whole = json.loads(Tokenizer(models.BPE()).to_str())
    whole["pre_tokenizer"] = section
    return Tokenizer.from_str(json.dumps(whole)).pre_tokenizer


@pytest.mark.parametrize(("section", "named"), [
    (None, "nothing"),
    ({"type": "Metaspace", "replacement": "▁"}, "Metaspace"),
    ({"type": "Sequence", "pretokenizers": [
        {"type": "Punctuation", "behavior": "Isolated"}, BYTE_LEVEL]}, "Punctuation"),
    ({"type": "Sequence", "pretokenizers": [BYTE_LEVEL, {"type": "Digits", "individual_digits": True}]}, "Digits"),
    ({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Removed", "invert": False}, BYTE_LEVEL]}, "Removed"),
    ({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Isolated", "invert": True}, BYTE_LEVEL]}, "inverted"),
])  # fmt: skip
def test_a_pre_tokenizer_that_is_not_supported_is_named(section, named):
    with pytest.raises(TokenizerError, match=named):
        read_pre_tokenizer(section)


def test_normalizers_are_none_or_nfc_and_any_other_is_named():
    assert read_normalizer(None) == ()
    assert read_normalizer({"type": "Sequence", "normalizers": [{"type": "NFC"}]}) == ("NFC",)
    with pytest.raises(TokenizerError, match="NFKC"):
        read_normalizer({"type": "NFKC"})


def test_nfc_joins_a_letter_and_its_accent():
    assert normalize("e\u0301", "NFC") == "\u00e9"
    assert normalize("e\u0301", None) == "e\u0301"


@pytest.mark.parametrize(("text", "clean"), [
    ("a\ud800b", "a\ufffdb"), ("\udc00\ud800", "\ufffd\ufffd"), ("\ud83d\ude00!", "\U0001f600!"), ("é", "é"),
])  # fmt: skip
def test_lone_surrogates_become_replacement_characters_and_pairs_the_character_they_spell(text, clean):
    assert without_surrogates(text) == clean
