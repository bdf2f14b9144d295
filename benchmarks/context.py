"""ITL against the context, with the KV cache and without: one request, greedy, through the whole engine."""

from __future__ import annotations

import random
from statistics import median

from benchmarks.sides import Side, wait_for_quiet

from llmcourse.model.config import load_config
from llmcourse.model.hub import DEFAULT_MODEL, model_folder

CONTEXTS = (64, 512, 2048, 4000)
GAPS = {"contiguous": 16, "none": 1}  # gaps timed a round; without a cache one takes seconds
ROUNDS_WITHOUT = 3
_SEED = 0


def run(rounds: int, threads: int) -> dict:
    """Median ITL of each cache at each context, in turns, `rounds` times after a warm-up; without a cache at most three."""
    folder = model_folder()
    config = load_config(folder, DEFAULT_MODEL)
    draw = random.Random(_SEED)
    ids = [draw.randrange(config.vocab_size) for _ in range(max(CONTEXTS))]
    sides = {cache: Side.of("ours.py", str(folder), "float32", threads, mode=cache) for cache in GAPS}
    itl = {cache: {str(n): [] for n in CONTEXTS} for cache in GAPS}
    try:
        for cache, side in sides.items():
            side.generate(ids[: CONTEXTS[0]], 1 + GAPS[cache])
        for number in range(rounds):
            for n in CONTEXTS:
                for cache, side in sides.items():
                    if cache == "none" and number >= ROUNDS_WITHOUT:
                        continue
                    wait_for_quiet()
                    # The first gap stands at n + 1 tokens.
                    gaps = side.generate(ids[:n], 1 + GAPS[cache])["itl_s"]
                    itl[cache][str(n)].append(round(median(gaps), 5))
    finally:
        for side in sides.values():
            side.close()
    facts = {"model": config.name, "dtype": "float32", "threads": threads, "rounds": rounds}
    return {**facts, "contexts": CONTEXTS, "itl_s": itl}
