"""Statements of lesson 00."""

from __future__ import annotations

from statistics import median

from .common import engine, english
from .ledger import FAILS, HOLDS, Found, claim


@claim(
    "C10", "the second token comes much faster than the first",
    lessons=("00", "06"), expected="the first token waits at least twice as long as the second",
    how="default model, prompt of 400 tokens, 8 output tokens, greedy; the median of three runs",
)  # fmt: skip
def the_second_token_comes_faster() -> Found:
    ids = engine().tokenizer.encode(english())[:400]
    runs = [engine().generate(ids, temperature=0, max_tokens=8, ignore_eos=True) for _ in range(4)][1:]
    first, second = median(run.ttft_s for run in runs), median(run.itl_s[0] for run in runs)
    measured = f"first token after {1000 * first:.0f} ms, the second {1000 * second:.0f} ms later: {first / second:.1f}×"
    return Found(measured, HOLDS if first > 2 * second else FAILS)
