"""StreamDecoder: pieces joined are the text, no half characters, stop strings wherever they fall into tokens."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmcourse.errors import TokenizerError
from llmcourse.text.stream import StreamDecoder

STOPS = st.lists(st.text("ab\u00e9", min_size=1, max_size=5), max_size=4)
CHUNKS = st.lists(st.text("ab\u00e9", max_size=6), max_size=12)


def by_bytes(stop=()) -> StreamDecoder:
    """A decoder to which id b is the byte b."""
    return StreamDecoder(lambda token_id: bytes([token_id]), stop)


def run(decoder: StreamDecoder, ids) -> list[str]:
    return [*(decoder.push(token_id) for token_id in ids), decoder.finish()]


def cut_plainly(text: str, stops: list[str]) -> tuple[str, str | None]:
    """Oracle: read letter by letter; the first moment at which the text ends in a stop string ends it."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            longest = max(found, key=len)
            return text[:end - len(longest)], longest
    return text, None


@given(ids=st.lists(st.integers(0, 49151), max_size=30))
def test_pieces_joined_equal_the_whole_decoded_for_any_ids(tokenizer, ids):
    assert "".join(run(tokenizer.stream(), ids)) == tokenizer.decode(ids)


@given(data=st.binary(max_size=40))
def test_pieces_joined_equal_the_whole_decoded_for_any_bytes(data):
    assert "".join(run(by_bytes(), data)) == data.decode("utf-8", "replace")


@given(text=st.text(max_size=30))
def test_byte_by_byte_every_piece_is_whole_characters_as_soon_as_they_are_complete(text):
    decoder = by_bytes()
    for letter in text:
        *first, last = letter.encode()
        assert [decoder.push(byte) for byte in first] == [""] * len(first)
        assert decoder.push(last) == letter
    assert decoder.finish() == ""


@pytest.mark.parametrize("text", ["👩‍🚀", "🤗", "é", "今天", "🏳️‍🌈"])
def test_no_piece_holds_a_replacement_character_for_text_that_tokens_split(tokenizer, text):
    pieces = run(tokenizer.stream(), tokenizer.encode(text))
    assert "".join(pieces) == text
    assert "\ufffd" not in "".join(pieces)


def test_finish_gives_a_replacement_character_for_bytes_that_stay_incomplete(tokenizer):
    ids = tokenizer.encode("a🤗")[:-1]
    pieces = run(tokenizer.stream(), ids)
    assert pieces[-1] == "\ufffd"
    assert "".join(pieces) == tokenizer.decode(ids) == "a\ufffd"


@given(chunks=CHUNKS, stops=STOPS)
def test_text_ends_before_the_stop_string_that_is_complete_first_however_it_falls_into_tokens(chunks, stops):
    decoder = StreamDecoder(lambda token_id: chunks[token_id].encode(), stops)
    pieces = run(decoder, range(len(chunks)))
    text, stop = cut_plainly("".join(chunks), stops)
    assert "".join(pieces) == text
    assert (decoder.stopped, decoder.stop_string) == (stop is not None, stop)


@given(chunks=CHUNKS, stops=STOPS)
def test_what_is_held_back_is_just_the_longest_start_of_a_stop_string(chunks, stops):
    decoder = StreamDecoder(lambda token_id: chunks[token_id].encode(), stops)
    sent = seen = ""
    for i, chunk in enumerate(chunks):
        sent += decoder.push(i)
        seen += chunk
        if decoder.stopped:
            break
        held = max((n for stop in stops for n in range(len(stop)) if seen.endswith(stop[:n])), default=0)
        assert sent == seen[:len(seen) - held]


def test_a_stop_string_over_several_tokens_is_never_sent_in_part(tokenizer):
    ids = tokenizer.encode("The answer is 42. User: more")
    decoder = tokenizer.stream(stop=[". User:"])
    assert "".join(run(decoder, ids)) == "The answer is 42"
    assert decoder.stop_string == ". User:"


def test_a_stop_string_within_one_token_cuts_the_token(tokenizer):
    (token_id,) = tokenizer.encode(" capital")
    decoder = tokenizer.stream(stop="pit")
    assert decoder.push(token_id) == " ca"
    assert decoder.stopped


def test_nothing_is_sent_after_a_stop_string():
    decoder = by_bytes("b")
    assert run(decoder, b"abab\xe2") == ["a", "", "", "", "", ""]


def test_an_unfinished_stop_string_is_sent_at_the_end():
    assert run(by_bytes(["abc"]), b"xab") == ["x", "", "", "ab"]


def test_a_stop_string_of_characters_with_several_bytes_is_found():
    decoder = by_bytes("é!")
    assert "".join(run(decoder, "café!?".encode())) == "caf"
    assert decoder.stop_string == "é!"


def test_one_string_is_one_stop_string_and_not_its_letters():
    assert "".join(run(by_bytes("ab"), b"baab")) == "ba"


@pytest.mark.parametrize("stop", ["", ["a", ""]])
def test_an_empty_stop_string_is_refused(stop):
    with pytest.raises(TokenizerError, match="stop string is empty"):
        by_bytes(stop)


def test_an_id_without_a_token_has_no_text_and_does_not_stop_a_stream(tokenizer):
    """Embeddings are padded: a model of 49,152 tokens may have more rows, and emit one of them."""
    half, rest = tokenizer.encode("\U0001f917")[:-1], tokenizer.encode("\U0001f917")[-1:]
    assert run(tokenizer.stream(), [*half, 49152, *rest]) == ["", "", "", "\U0001f917", ""]


def test_special_tokens_stay_out_of_the_text_on_request(tokenizer):
    ids = tokenizer.encode("<|im_start|> Hi<|im_end|>", special=True)
    assert "".join(run(tokenizer.stream(skip_special_tokens=True), ids)) == " Hi"
    assert "".join(run(tokenizer.stream(), ids)) == "<|im_start|> Hi<|im_end|>"


def test_a_stop_string_is_found_across_a_special_token_that_is_left_out(tokenizer):
    ids = [*tokenizer.encode("a EN"), tokenizer.special["<|im_end|>"], *tokenizer.encode("D b")]
    decoder = tokenizer.stream(stop="END", skip_special_tokens=True)
    assert "".join(run(decoder, ids)) == "a "
    assert decoder.stop_string == "END"


def test_a_push_takes_no_longer_for_a_longer_stop_string():
    """40,000 pushes, of which every second may start a stop string. For one 50 times as long, at most 8 times the
    processor time, best of 3: about 1 is measured, and 50 or more when every start of the stop string is tried."""
    def seconds(n: int) -> float:
        times = []
        for _ in range(3):
            decoder = by_bytes("ab" * n)
            start = time.process_time()
            text = "".join(run(decoder, b"aabb" * 10_000))
            times.append(time.process_time() - start)
            assert text == "aabb" * 10_000
        return min(times)

    assert seconds(5_000) / seconds(100) < 8
