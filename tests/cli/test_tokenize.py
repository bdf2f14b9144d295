"""`llmcourse tokenize`: ids, pieces, colours."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from llmcourse.cli.show import gloss

TEXT = "Tokenization isn't magic: 2 × 12, 你好 🎉"


def test_json_gives_the_tokenizers_ids_and_printable_tokens(run, tokenizer):
    ran = run("tokenize", TEXT, "--json")
    ids = tokenizer.encode(TEXT)
    assert json.loads(ran.out) == {"ids": ids, "tokens": tokenizer.tokens(ids)}
    assert list(json.loads(ran.out)) == ["ids", "tokens"]


def test_special_tokens_are_ordinary_text_unless_asked_for(run, tokenizer):
    number = tokenizer.special["<|im_end|>"]
    assert number not in json.loads(run("tokenize", "<|im_end|>", "--json").out)["ids"]
    assert json.loads(run("tokenize", "<|im_end|>", "--special", "--json").out)["ids"] == [number]


def test_a_piped_text_is_read(run, piped, tokenizer):
    piped("été\n".encode())
    assert json.loads(run("tokenize", "--json").out)["ids"] == tokenizer.encode("été")


def test_without_colours_every_token_stands_above_its_id(run, tokenizer):
    ran = run("tokenize", "The capital of France is")
    pieces, numbers = ran.out.splitlines()
    ids = tokenizer.encode("The capital of France is")
    assert pieces.split() == tokenizer.tokens(ids)
    assert numbers.split() == [str(number) for number in ids]
    starts = [pieces.index(piece) for piece in tokenizer.tokens(ids)]
    assert starts == [numbers.index(f"{number}") for number in ids]
    assert "5 tokens, 24 characters, 24 bytes, 4.80 characters per token" in ran.err


def test_colours_come_on_a_terminal_and_not_where_no_color_is_set(run, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "48;5;" in run("tokenize", "Hello there").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "48;5;" not in run("tokenize", "Hello there").out


def test_tokenize_does_not_import_torch(start):
    code = (
        "import sys\nfrom llmcourse.cli import app\ntry:\n    app(['tokenize', 'Hello'])\nexcept SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    out, _ = start(code, python=("-c",)).communicate()
    assert out.decode().split()[-1] == "False"


letters = st.characters(min_codepoint=33, exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"])
pieces = st.text(letters, min_size=1, max_size=12)


@given(st.lists(st.tuples(pieces, st.integers(0, 200_000)), min_size=1, max_size=40), st.integers(20, 100))
def test_a_gloss_shows_every_token_once_in_order_within_the_width(tokens, width):
    rows = [row.plain for row in gloss([piece for piece, _ in tokens], [number for _, number in tokens], width)]
    assert [int(number) for row in rows[1::2] for number in row.split()] == [number for _, number in tokens]
    assert "".join("".join(row.split()) for row in rows[::2]) == "".join("".join(piece.split()) for piece, _ in tokens)
    widest = max(width, max(max(cell_len(piece), len(str(number))) for piece, number in tokens))
    assert all(cell_len(row) <= widest for row in rows)


@pytest.mark.parametrize("indent", ["", "    "])
def test_every_row_of_a_gloss_is_indented(indent):
    rows = [row.plain for row in gloss(["abcdefgh"] * 9, range(9), 40, indent)]
    assert len(rows) == 6 and all(row.startswith(indent + ("a" if n % 2 == 0 else "")) for n, row in enumerate(rows))
