"""Prefill and decode, side by side on the same weights."""

from __future__ import annotations

import os
import random
from statistics import fmean, median

from benchmarks.sides import Side, wait_for_quiet

from llmcourse.measure.machine import memory_bandwidth, peak_flops
from llmcourse.measure.roofline import BITS_PER_BYTE, forward_bytes, forward_flops
from llmcourse.model.config import load_config
from llmcourse.model.download import default_gguf
from llmcourse.model.hub import DEFAULT_MODEL, model_folder

N_PREFILL, N_SHORT, N_DECODE = 512, 16, 65
LONG_CONTEXT = 2048
_SEED = 0


def run(rounds: int, threads: int, peers: list[str]) -> dict:
    """All sides loaded at once, measured in turns, `rounds` times after a warm-up."""
    import torch

    torch.set_num_threads(threads)
    folder = model_folder()
    config = load_config(folder, DEFAULT_MODEL)
    ceilings = {
        "bytes_per_s": memory_bandwidth(),
        "flops_per_s": {name: peak_flops(getattr(torch, name)) for name in ("float32", "bfloat16")},
    }
    sides = {
        "llmcourse float32": Side.of("ours.py", str(folder), "float32", threads),
        "transformers float32": Side.of("peer_transformers.py", str(folder), "float32", threads),
        "transformers float32 generate": Side.of("peer_transformers.py", str(folder), "float32", threads, "generate"),
        "llmcourse bfloat16": Side.of("ours.py", str(folder), "bfloat16", threads),
        "transformers bfloat16": Side.of("peer_transformers.py", str(folder), "bfloat16", threads),
    }
    for label in ("native", "native-fast"):
        sides[f"llmcourse {label}"] = Side.of("ours.py", str(default_gguf()), label, threads)
    for line in peers:
        side = Side.of_line(line)
        sides[f"{side.facts['side']} {side.facts['dtype']}"] = side
    try:
        measured = measure(sides, rounds, config.vocab_size)
    finally:
        for side in sides.values():
            side.close()
    for name, side in sides.items():
        rates = measured[name]
        measured[name] = {**side.facts, **rates, **shares(rates, side.facts["dtype"], config, ceilings)}
    return {
        "model": config.name,
        "threads": threads,
        "spin": os.environ.get("GOMP_SPINCOUNT", "default"),
        "rounds": rounds,
        "prefill_tokens": N_PREFILL,
        "decode_tokens": N_DECODE - 1,
        "decode_after": N_SHORT,
        "long_after": LONG_CONTEXT,
        "ceilings": ceilings,
        "sides": measured,
    }


def measure(sides: dict[str, Side], rounds: int, vocab_size: int) -> dict[str, dict]:
    """Tokens per second of every side and round: prefill, decode after a short and after a long prompt."""
    draw = random.Random(_SEED)
    ids = [draw.randrange(vocab_size) for _ in range(LONG_CONTEXT)]
    names = ("prefill", "decode", "decode_long", "busy_percent")
    measured = {name: {key: [] for key in names} for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            busy = wait_for_quiet()
            prefill = side.generate(ids[:N_PREFILL], 1)
            short, long = side.generate(ids[:N_SHORT], N_DECODE), side.generate(ids, N_DECODE // 2)
            if number == 0:  # warm-up
                measured[name]["output_ids"] = short["ids"]
                continue
            row = [N_PREFILL / prefill["ttft_s"], rate(short["itl_s"]), rate(long["itl_s"]), busy]
            for key, value in zip(names, row):
                measured[name][key].append(round(value, 2))
    return measured


def rate(itl_s: list[float]) -> float:
    """Tokens per second between the first token and the last."""
    return len(itl_s) / sum(itl_s)


def shares(rates: dict, dtype: str, config, ceilings: dict) -> dict[str, float]:
    """Shares of the machine's measured ceilings: MFU of prefill, MBU of decode (of the least possible traffic)."""
    itemsize = {"float32": 4, "bfloat16": 2}.get(dtype)
    if itemsize is None:
        return {}
    flops = forward_flops(config, N_PREFILL) / N_PREFILL * median(rates["prefill"])
    short = decode_bytes(config, itemsize, N_SHORT, N_DECODE) * median(rates["decode"])
    long = decode_bytes(config, itemsize, LONG_CONTEXT, N_DECODE // 2) * median(rates["decode_long"])
    return {
        "mfu": flops / ceilings["flops_per_s"][dtype],
        "mbu": short / ceilings["bytes_per_s"],
        "mbu_long": long / ceilings["bytes_per_s"],
    }


def decode_bytes(config, itemsize: int, n_prompt: int, n_output: int) -> float:
    """Bytes of a decode step after n_prompt tokens, the mean over the n_output − 1 steps."""
    bits = BITS_PER_BYTE * itemsize
    return fmean(forward_bytes(config, 1, n_prompt + i, bits, bits) for i in range(n_output - 1))
