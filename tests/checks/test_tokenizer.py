"""Lab 01's reference against outside oracles: HF `tokenizers` on the real vocabulary, and Python's own decoder; exact."""

from __future__ import annotations

import inspect
import json

import pytest
import tokenizers
from hypothesis import given as drawn
from hypothesis import strategies as st

from llmcourse import given
from llmcourse.checks.tokenizer_inputs import REAL_MERGES, REAL_VOCAB
from llmcourse.text.bpe import train_bpe
from llmcourse.text.corpus import speeches
from llmcourse.workbook.languages import sentences

BYTE_VOCAB = {bytes([byte]): 1000 - 3 * byte for byte in range(256)}
TEXTS = {
    "code": inspect.getsource(json.scanner),
    "digits and spaces": "On 24.12.1999 it cost 1,234.50 €;  ½ of 10² \n\n is   50.\r\n\tx",
    "emoji": "👩🏽‍🚀 lands 🙂🙂🙂 … ✓ ❤️",
    **{one.language: one.text for one in sentences().values()},
}


@pytest.fixture(scope="module")
def hf(default_folder):
    """HF `tokenizers` on the default model's tokenizer.json."""
    return tokenizers.Tokenizer.from_file(str(default_folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def lab():
    """The lab's own solutions."""
    return given.answer("01")


@pytest.mark.parametrize("name", TEXTS)
def test_the_reference_encodes_and_decodes_like_hf_tokenizers(lab, hf, tokenizer, name):
    want = hf.encode(TEXTS[name], add_special_tokens=False).ids
    assert lab.encode(TEXTS[name], tokenizer.bpe.merges, tokenizer.bpe.vocab) == want
    assert lab.decode(want, tokenizer.bpe.vocab) == TEXTS[name] == hf.decode(want)


def test_the_reference_learns_the_merges_of_the_engines_trainer():
    text = speeches()["1790-Washington-1"]
    assert given.answer("01").train_bpe(text, 256 + 150) == train_bpe(text, 256 + 150)


@drawn(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_comes_back_from_its_bytes_in_one_go_and_as_a_stream(text):
    lab, ids = given.answer("01"), [BYTE_VOCAB[bytes([byte])] for byte in text.encode()]
    stream = lab.StreamDecoder(BYTE_VOCAB)
    assert lab.decode(ids, BYTE_VOCAB) == text
    assert "".join([*map(stream.push, ids), stream.finish()]) == text


@drawn(st.binary(max_size=20))
def test_a_stream_of_any_bytes_joins_to_what_python_decodes(raw):
    stream = given.answer("01").StreamDecoder(BYTE_VOCAB)
    pieces = [stream.push(BYTE_VOCAB[bytes([byte])]) for byte in raw]
    assert "".join([*pieces, stream.finish()]) == raw.decode("utf-8", errors="replace")


def test_the_probes_slice_is_the_beginning_of_the_real_vocabulary(tokenizer):
    assert REAL_MERGES == tokenizer.bpe.merges[: len(REAL_MERGES)]
    assert all(tokenizer.bpe.vocab[piece] == token for piece, token in REAL_VOCAB.items())
    assert {piece for piece in tokenizer.bpe.vocab if len(piece) == 1} <= set(REAL_VOCAB)


def test_an_id_of_the_probes_slice_is_neither_a_byte_nor_256_plus_rank():
    assert all(token != piece[0] for piece, token in REAL_VOCAB.items() if len(piece) == 1)
    assert all(REAL_VOCAB[left + right] != 256 + rank for rank, (left, right) in enumerate(REAL_MERGES))
