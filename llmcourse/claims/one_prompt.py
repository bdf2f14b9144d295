"""Statements of lesson 00."""

from __future__ import annotations

from statistics import median

from .common import engine, english
from .ledger import FAILS, HOLDS, Found, claim

MUCH = 2


@claim(
    "C10", "the second token comes much faster than the first",
    lessons=("00", "06"), expected="the first token waits at least twice as long as the second",
    because="“much” is at least twice: a reader notices it without a clock. An engine that does the same work for every "
            "token gives 1",
    how="default model, prompt of 400 tokens, 8 output tokens, greedy; the median of three runs",
)  # fmt: skip
def the_second_token_comes_faster() -> Found:
    ids = engine().tokenizer.encode(english())[:400]
    runs = [engine().generate(ids, temperature=0, max_tokens=8, ignore_eos=True) for _ in range(4)][1:]
    first, second = median(run.ttft_s for run in runs), median(run.itl_s[0] for run in runs)
    return judge(first, second)


def judge(first: float, second: float) -> Found:
    """Verdict of C10 from the TTFT and the first gap, in seconds."""
    measured = f"first token after {1000 * first:.0f} ms, the second {1000 * second:.0f} ms later: {first / second:.1f}×"
    return Found(measured, HOLDS if first >= MUCH * second else FAILS)
