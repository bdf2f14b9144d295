"""Tokens in boxes, the language table, and BPE in slow motion."""

from __future__ import annotations

import unicodedata

import pytest

from llmcourse.workbook.languages import sentences
from llmcourse.workbook.merging import pair_counts, replay
from llmcourse.workbook.token_view import TokenView, side_by_side, token_viewer, view_tokens

NAMES = {  # how Unicode begins the names of a script's letters, where that is not the script's own name
    "Han": ("CJK",), "Kanji and kana": ("CJK", "HIRAGANA", "KATAKANA"),
}  # fmt: skip
WORDS = {"ban": 5, "band": 3, "banana": 4, "bandana": 2}


def test_boxes_as_text_stand_between_bars_with_their_notes():
    assert str(TokenView(("un", "h", "appiness"))) == "|un|h|appiness|"
    assert str(TokenView(("The", "."), ("87 ms", "37 ms"), "two")) == "two\n|The (87 ms)|. (37 ms)|"


def test_a_token_that_looks_like_html_is_shown_and_not_obeyed():
    html = TokenView(("<|im_end|>", "<script>"), ("&", "1")).html()
    assert "&lt;|im_end|&gt;" in html and "<script>" not in html and "&amp;" in html


def test_texts_side_by_side_are_columns_whose_marks_are_shown_and_not_obeyed():
    html = side_by_side({"top-k": "one\ntwo", "<b>": "three & <i>"}).html()
    assert html.count("<td") == html.count("<th") == 2 and "pre-wrap" in html and "one\ntwo" in html
    assert "&lt;b&gt;" in html and "three &amp; &lt;i&gt;" in html


def test_texts_side_by_side_stand_one_below_the_other_as_text():
    assert str(side_by_side({"a": "x", "b": "y"})) == "a:\nx\n\nb:\ny"


def test_neighbours_have_different_colours():
    boxes = TokenView(tuple("abcdefg")).html().split("background:")[1:]
    colours = [box[:7] for box in boxes]
    assert len(colours) == 7 and all(one != other for one, other in zip(colours, colours[1:]))


def test_a_view_counts_tokens_characters_and_bytes(tokenizer):
    view = view_tokens(tokenizer, "né 🦜")
    assert view.title == f"{len(tokenizer.encode('né 🦜'))} tokens, 4 characters, 8 bytes"
    assert view.notes == tuple(map(str, tokenizer.encode("né 🦜"))) and len(view.tokens) == len(view.notes)


def test_no_text_is_no_error(tokenizer):
    assert "(no tokens)" in str(token_viewer(tokenizer)("")) and "(no tokens)" in token_viewer(tokenizer)("").html()


def test_the_table_has_many_languages_and_scripts_each_once():
    table = sentences()
    assert len(table) >= 24 and len({one.script for one in table.values()}) >= 12
    assert len({one.text for one in table.values()}) == len(table) and next(iter(table)) == "English"


@pytest.mark.parametrize("one", sentences().values(), ids=lambda one: one.language)
def test_a_sentence_is_normalised_and_written_in_its_script(one):
    assert unicodedata.is_normalized("NFC", one.text)
    begins = NAMES.get(one.script, (one.script.upper(),))
    letters = [letter for letter in one.text if letter.isalpha() and unicodedata.category(letter) != "Lm"]
    assert letters and all(unicodedata.name(letter).startswith(begins) for letter in letters)


def test_a_replay_shows_the_count_and_the_words_after_each_merge():
    steps = replay(WORDS, 2)
    assert [(step.merged, step.count) for step in steps] == [(None, 0), ((b"a", b"n"), 20), ((b"b", b"an"), 14)]
    assert steps[2].words == ((b"ban",), (b"ban", b"d"), (b"ban", b"an", b"a"), (b"ban", b"d", b"an", b"a"))


def test_a_replay_ends_when_every_word_is_one_token():
    steps = replay(WORDS, 50)
    assert len(steps) == 7 and all(len(word) == 1 for word in steps[-1].words)


def test_pairs_count_as_often_as_their_words_occur():
    counts = pair_counts(replay(WORDS, 0)[0].words, WORDS)
    assert counts[b"a", b"n"] == 5 + 3 + 2 * 4 + 2 * 2 and counts[b"d", b"a"] == 2
