"""GGUF files with a SentencePiece tokenizer ("llama"): vocabulary and scores become merges.

Oracles: SentencePiece's rule written out plainly (as llama.cpp applies it), and HF `tokenizers` on the file that is made.
"""

from __future__ import annotations

import pytest
from gguf import TokenType
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as HF

from llmcourse.model.gguf import convert_gguf
from llmcourse.text.tokenizer import Tokenizer
from tests.text.hf_folders import ENGLISH, sentencepiece_like
from tests.text.test_against_hf import SCRIPTS
from tests.tiny_gguf import tiny_tensors, write_gguf


def pieces() -> list[tuple[str, float, TokenType]]:
    """The vocabulary of `sentencepiece_like` as SentencePiece scores it: the earlier learned, the higher."""
    vocab = sentencepiece_like("llama2").get_vocab(with_added_tokens=False)
    kinds = {0: TokenType.UNKNOWN, 1: TokenType.CONTROL, 2: TokenType.CONTROL, **dict.fromkeys(range(3, 259), TokenType.BYTE)}
    tokens = sorted(vocab, key=vocab.get)
    return [(token, 0.0 if i < 259 else 259.0 - i, kinds.get(i, TokenType.NORMAL)) for i, token in enumerate(tokens)]


def spelled_out(text: str, prefix: bool) -> list[int]:
    """Join, as long as there is one, the leftmost of the neighbours whose token scores highest; then bytes for the rest."""
    ids = {token: i for i, (token, _, _) in enumerate(pieces())}
    score = {token: value for token, value, kind in pieces() if kind == TokenType.NORMAL}
    symbols = list((" " * (prefix and text != "") + text).replace(" ", "▁"))
    while True:
        joined = [(score[a + b], -i) for i, (a, b) in enumerate(zip(symbols, symbols[1:])) if a + b in score]
        if not joined:
            break
        i = -max(joined)[1]
        symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
    return [i for s in symbols for i in ([ids[s]] if s in score else [3 + byte for byte in s.encode()])]


@pytest.fixture(scope="module", params=[True, False], ids=["prefix", "no prefix"])
def made(request, tmp_path_factory):
    """The converted tokenizer, HF's reading of it, and whether a space is put before a text."""
    folder, extra = tmp_path_factory.mktemp("gguf"), {} if request.param else {"tokenizer.ggml.add_space_prefix": False}
    file = write_gguf(folder / "tiny.gguf", tiny_tensors(), model="llama", pre="default", pieces=pieces(), extra=extra, eot=None)
    made = convert_gguf(file, folder / "made")
    theirs = HF.from_file(str(made / "tokenizer.json"))
    theirs.encode_special_tokens = True
    return Tokenizer.from_folder(made), theirs, request.param


@pytest.mark.parametrize("name", ["Latin", "Greek", "Cyrillic", "Chinese", "Arabic"])
def test_ids_equal_the_rule_written_out_and_hf(made, name):
    ours, theirs, prefix = made
    assert ours.encode(SCRIPTS[name]) == spelled_out(SCRIPTS[name], prefix) == theirs.encode(SCRIPTS[name], add_special_tokens=False).ids


def test_ids_on_english_equal_hf(made):
    ours, theirs, _ = made
    assert ours.encode(ENGLISH[:50_000]) == theirs.encode(ENGLISH[:50_000], add_special_tokens=False).ids


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text("the rand▁é<s>🤗\n", max_size=30))
def test_ids_on_any_text_equal_the_rule_written_out(made, text):
    ours, _, prefix = made
    assert ours.encode(text) == spelled_out(text, prefix)
    if "▁" not in text:
        assert ours.decode(ours.encode(text)) == text


def test_a_prompt_begins_with_bos_unless_the_file_says_no(made):
    ours, _, prefix = made
    assert ours.prompt("the") == [1, *spelled_out("the", prefix)]


def test_text_that_looks_like_a_control_token_stays_text(made):
    ours, _, _ = made
    assert ours.special == {"<unk>": 0, "<s>": 1, "</s>": 2}
    assert not {0, 1, 2} & set(ours.encode("<s>a</s><unk>"))
