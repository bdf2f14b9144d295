"""BPE: training against the plain way and HF's trainer, encoding against the plain way, missing bytes, time."""

from __future__ import annotations

import json
import time
import warnings
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from llmcourse.errors import TokenizerError
from llmcourse.text import bpe
from llmcourse.text.bpe import BPE, merge_pair, train_bpe, vocabulary
from llmcourse.text.pattern import Cut, split
from tests.text.hf_folders import ENGLISH, small_merges

WORDS = st.lists(st.text("aabbc", min_size=1, max_size=12), max_size=12)  # few letters: many ties and repeats


def train_plainly(words: list[str], vocab_size: int) -> list[tuple[bytes, bytes]]:
    """Oracle: count every pair anew before every merge, and take the smallest of the commonest."""
    tokens = [bytes([byte]) for byte in range(256)]
    sequences, merges = [list(word.encode()) for word in words], []
    while len(tokens) < vocab_size:
        counts = Counter(pair for ids in sequences for pair in pairwise(ids))
        if not counts:
            break
        left, right = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append((tokens[left], tokens[right]))
        sequences = [merge_pair(ids, (left, right), len(tokens)) for ids in sequences]
        tokens.append(tokens[left] + tokens[right])
    return merges


def encode_plainly(piece: bytes, merges: list[tuple[bytes, bytes]]) -> list[bytes]:
    """Oracle: replay every merge over the whole piece, first learned first."""
    parts = [bytes([byte]) for byte in piece]
    for left, right in merges:
        i = 0
        while i + 1 < len(parts):
            if (parts[i], parts[i + 1]) == (left, right):
                parts[i:i + 2] = [left + right]
            i += 1
    return parts


@given(words=WORDS, extra=st.integers(0, 40))
def test_training_equals_recounting_every_pair_before_every_merge(words, extra):
    assert train_bpe(words, 256 + extra) == train_plainly(words, 256 + extra)


def test_training_on_english_equals_recounting_every_pair_before_every_merge():
    assert train_bpe(ENGLISH[:20_000], 400, "gpt2") == train_plainly(split(ENGLISH[:20_000], "gpt2"), 400)


def test_training_on_lower_case_words_equals_hf_tokenizers():
    """With letters a–z alone, HF numbers tokens in the same order as we do, so that ties fall alike."""
    words = [word for word in ENGLISH[:100_000].split() if word.isascii() and word.isalpha() and word.islower()]
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=26 + 500, show_progress=False)
    theirs.train_from_iterator([" ".join(words)], trainer)
    merges = [(left.encode(), right.encode()) for left, right in json.loads(theirs.to_str())["model"]["merges"]]
    assert len(set("".join(words))) == 26
    assert train_bpe(words, 256 + 500) == merges


def test_of_pairs_with_equal_counts_the_smallest_is_merged_first():
    assert train_bpe(["cd", "ab", "bc"], 258) == [(b"a", b"b"), (b"b", b"c")]


def test_a_byte_is_smaller_than_a_learned_token():
    assert train_bpe("aaab aaab", 258) == [(b"a", b"a"), (b"a", b"b")]


@given(words=WORDS, shuffled=st.randoms())
def test_merges_do_not_depend_on_the_order_of_the_words(words, shuffled):
    other = list(words)
    shuffled.shuffle(other)
    assert train_bpe(words, 280) == train_bpe(other, 280)


def test_training_stops_early_when_no_pair_is_left():
    assert train_bpe("abc", 1000) == [(b"a", b"b"), (b"ab", b"c")]
    assert train_bpe("", 1000) == []


@pytest.mark.parametrize("size", [255, 0, -1])
def test_a_vocabulary_smaller_than_the_bytes_is_refused(size):
    with pytest.raises(TokenizerError, match=f"vocab_size {size} .* 256"):
        train_bpe("abc", size)


@given(words=WORDS)
def test_no_two_merges_give_the_same_token(words):
    merges = train_bpe(words, 400)
    assert len(vocabulary(merges)) == 256 + len(merges)


def test_training_takes_lone_surrogates_as_replacement_characters():
    assert train_bpe("\ud800\ud800", 300) == train_bpe("\ufffd\ufffd", 300)


@given(words=WORDS, text=st.text("abcd", max_size=40))
def test_encoding_equals_replaying_the_merges_one_by_one(words, text):
    merges = train_bpe(words, 300)
    vocab = vocabulary(merges)
    assert BPE(vocab, merges).encode(text.encode()) == [vocab[part] for part in encode_plainly(text.encode(), merges)]


def test_encoding_english_words_equals_replaying_the_merges_one_by_one():
    merges = list(small_merges())
    vocab = vocabulary(merges)
    coder = BPE(vocab, merges)
    for piece in sorted(set(split(ENGLISH[:60_000], "gpt2")))[:1500]:
        assert coder.encode(piece.encode()) == [vocab[part] for part in encode_plainly(piece.encode(), merges)]


@given(data=st.binary(max_size=80))
def test_any_bytes_come_back(data):
    coder = BPE(vocabulary(small_merges()), small_merges())
    assert coder.decode(coder.encode(data)) == data


def test_an_id_that_the_vocabulary_lacks_is_named():
    with pytest.raises(TokenizerError, match="no token 256 in this vocabulary of 256"):
        BPE(vocabulary([]), []).decode([97, 256])


def test_ids_come_from_the_vocabulary_and_need_not_follow_the_merges():
    vocab = {b"a": 70, b"b": 5, b"ab": 0, b"abb": 900}
    coder = BPE(vocab, [(b"a", b"b"), (b"ab", b"b")])
    assert coder.encode(b"abbaba") == [900, 0, 70]


def test_ignore_merges_takes_a_piece_that_is_a_token_whole():
    vocab = {b"a": 0, b"b": 1, b"c": 2, b"bc": 3, b"abc": 4}
    assert BPE(vocab, [(b"b", b"c")]).encode(b"abc") == [0, 3]
    assert BPE(vocab, [(b"b", b"c")], ignore_merges=True).encode(b"abc") == [4]


def test_missing_bytes_are_dropped_with_one_warning_and_their_neighbours_merge():
    coder = BPE({b"a": 0, b"b": 1, b"ab": 2}, [(b"a", b"b")])
    with pytest.warns(UserWarning, match="00 01 02"):
        assert coder.encode(b"a\x04b") == [2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert coder.encode(b"\x04") == []
    assert len(coder.missing_bytes) == 254


def test_merges_that_do_not_fit_the_vocabulary_are_refused():
    with pytest.raises(TokenizerError, match="merge 0 .*b'ab'"):
        BPE({b"a": 0, b"b": 1}, [(b"a", b"b")])


def test_the_memory_of_pieces_is_bounded_and_leaves_out_long_ones(monkeypatch):
    monkeypatch.setattr(bpe, "CACHED_PIECES", 10)
    coder = BPE(vocabulary([]), [])
    pieces = [str(i) for i in range(95)] + ["x" * 1000]
    assert coder.decode(coder.encode_pieces(pieces)).decode() == "".join(pieces)
    assert 0 < len(coder._cache) <= 10
    assert max(map(len, coder._cache)) < 1000


@pytest.mark.parametrize("letters", ["a", "the", " "])
def test_the_time_for_one_long_word_grows_in_proportion_to_its_length(tokenizer, letters):
    """25,000 and 200,000 letters, the best of three, processor time. In proportion it is 8 times as long, and 64 times
    if the way is quadratic; the bound lies between, far from both, since other programs disturb a measurement."""
    def seconds(n: int) -> float:
        word, times = (letters * n)[:n], []
        for _ in range(3):
            start = time.process_time()
            ids = tokenizer.encode(word)
            times.append(time.process_time() - start)
        assert tokenizer.decode(ids) == word
        return min(times)

    assert seconds(200_000) / seconds(25_000) < 24


def test_training_without_a_cut_treats_the_text_as_one_word():
    assert train_bpe("ab ab", 258, (Cut(None),)) == [(b"a", b"b"), (b" ", b"ab")]
