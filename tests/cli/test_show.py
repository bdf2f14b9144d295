"""Numbers as people read them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse.cli.prompt import unescape
from llmcourse.cli.show import milliseconds, numbers
from llmcourse.engine.request import Result

RESULT = Result(
    text="abc", prompt_ids=[1, 2, 3], output_ids=[4, 5, 6], finish_reason="stop", ttft_s=0.1, itl_s=[0.02, 0.04],
    tokens_per_s=18.75, logprobs=[],
)  # fmt: skip


class AnyModel:
    """What the line needs to know of a model."""

    name, dtype, device = "M", torch.bfloat16, torch.device("cpu")


@pytest.mark.parametrize(
    "seconds, text", [(0.0012345, "1.23 ms"), (0.0312, "31.2 ms"), (0.2, "200 ms"), (1.24, "1,240 ms"), (0, "0.00 ms")]
)
def test_milliseconds_have_three_digits_that_matter(seconds, text):
    assert milliseconds(seconds) == text


def test_the_line_of_numbers_has_all_of_them():
    assert numbers(RESULT, AnyModel) == (
        "3 prompt tokens · 3 output tokens · TTFT 100 ms · mean ITL 30.0 ms · 18.8 tokens/s · M, bfloat16, cpu"
    )


def test_one_token_is_not_tokens_and_has_no_itl():
    one = replace(RESULT, prompt_ids=[1], output_ids=[4], itl_s=[], tokens_per_s=10.0)
    assert numbers(one, AnyModel) == "1 prompt token · 1 output token · TTFT 100 ms · 10.0 tokens/s · M, bfloat16, cpu"


@pytest.mark.parametrize(
    "reason, said", [("length", "stopped by the length limit"), ("cancelled", "stopped by Ctrl-C")]
)
def test_the_line_says_what_ended_an_answer_early(reason, said):
    assert numbers(replace(RESULT, finish_reason=reason), AnyModel).endswith(f" · {said}")


@pytest.mark.parametrize(
    "typed, meant",
    [(r"\n", "\n"), (r"a\tb", "a\tb"), (r"\\n", r"\n"), (r"\\\n", "\\\n"), ("plain", "plain")],
)
def test_backslashes_in_a_stop_string_mean_what_they_mean_in_python(typed, meant):
    assert unescape(typed) == meant
