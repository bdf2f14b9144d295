"""`generate --trace`: what it shows is what the model computed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmcourse.cli.show import console
from llmcourse.cli.trace import bar, fit, show_step
from llmcourse.engine.token_stream import Token
from llmcourse.engine.request import TokenLogprobs

PROMPT = "The capital of France is"
ROW = re.compile(r"  (→| ) +(\d+)  (.{18}) +([\d.]+)%")


@pytest.fixture(autouse=True)
def one_model(monkeypatch, model):
    """Runs in this process share the session's model."""
    monkeypatch.setattr("llmcourse.engine.engine.load_model", lambda _name, device, dtype, quant: model)


def trace(run, *options: str) -> str:
    """The trace of three greedy tokens."""
    ran = run("generate", PROMPT, "--raw", "--temperature", "0", "--max-tokens", "3", "--trace", *options)
    assert ran.code == 0, ran.err
    return ran.out


def test_the_trace_begins_with_the_prompts_tokens_above_their_ids(run, tokenizer):
    ids = tokenizer.encode(PROMPT)
    heading, pieces, numbers = trace(run).splitlines()[:3]
    assert heading == f"prompt: {len(ids)} tokens"
    assert pieces.split() == tokenizer.tokens(ids)
    assert [int(number) for number in numbers.split()] == ids


def test_every_step_shows_the_five_likeliest_tokens_of_the_model(run, model, tokenizer):
    out, ids = trace(run), tokenizer.encode(PROMPT)
    steps = out.split("step ")[1:]
    assert len(steps) == 3
    for step in steps:
        rows = ROW.findall(step)
        top = model(ids)[-1].softmax(-1).topk(5)
        assert [int(number) for _, number, _, _ in rows] == top.indices.tolist()
        # shown to a tenth of a percent; half of that, and the fast table's last bits
        assert [float(percent) for *_, percent in rows] == pytest.approx((100 * top.values).tolist(), abs=0.06)
        assert [piece.rstrip() for _, _, piece, _ in rows] == tokenizer.tokens(top.indices.tolist())
        assert [mark for mark, *_ in rows] == ["→", " ", " ", " ", " "]
        ids = [*ids, int(rows[0][1])]


@pytest.mark.parametrize("cache, computed", [("contiguous", [5, 1, 1]), ("none", [5, 6, 7])])
def test_every_step_says_how_many_tokens_it_computed_and_how_long(run, cache, computed):
    heading = re.compile(r"^step (\d+): computed (\d+) tokens? in [\d.,]+ ms$", re.MULTILINE)
    steps = heading.findall(trace(run, "--cache", cache))
    assert steps == [(str(number), str(n)) for number, n in enumerate(computed, 1)]


def test_the_trace_ends_with_the_text_and_has_no_colour_codes_in_a_pipe(run):
    traced = trace(run)
    ran = run("generate", PROMPT, "--raw", "--temperature", "0", "--max-tokens", "3")
    assert traced.split("\ntext\n")[1].rstrip("\n") == ran.out.rstrip("\n")
    assert "\x1b" not in traced


def test_a_chosen_token_outside_the_five_gets_a_row_of_its_own(tokenizer, capsys):
    top = tuple((number, -1.0 - number) for number in (300, 301, 302, 303, 304))
    show_step(console(), tokenizer, 1, 1, Token(400, "", 0.01, TokenLogprobs(chosen=-2.302585, top=top)))
    rows = ROW.findall(capsys.readouterr().out)
    assert len(rows) == 6
    assert (rows[-1][0], rows[-1][1], rows[-1][3]) == ("→", "400", "10.0")


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_never_has_a_shorter_bar(a, b):
    assert len(bar(max(a, b))) >= len(bar(min(a, b)))


def test_a_bar_of_all_is_thirty_columns_and_of_nothing_none():
    assert (bar(1.0), bar(0.0)) == ("█" * 30, "")


@pytest.mark.parametrize("piece", ["short", "exactly_18_letters", "a_token_that_is_too_long", "一二三四五六七八九十"])
def test_a_piece_fills_its_column_exactly(piece):
    from rich.cells import cell_len

    assert cell_len(fit(piece)) == 18
    assert fit(piece).rstrip(" …").removesuffix("…") in piece
