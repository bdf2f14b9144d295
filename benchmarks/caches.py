"""Each kind of KV cache: bytes held, time between tokens, perplexity."""

from __future__ import annotations

from statistics import median

from benchmarks.sides import wait_for_quiet
from llmcourse import Engine, SamplingParams, load_model, load_tokenizer
from llmcourse.cache import make_cache
from llmcourse.measure.perplexity import Protocol, perplexity
from llmcourse.text.corpus import speeches

SPECS = ("contiguous", "int8", "int4", "int4:channel/64", "int4:token/64", "int4:token/32", "int4:token/16",
         "window:1024+4", "window:256+4", "window:256+1", "window:256")  # fmt: skip
N_PAST, N_NEW = 2_048, 32  # decode: gaps between N_NEW tokens after N_PAST
PROTOCOL, N_SCORED = Protocol(window=2_048, stride=2_048, bos=False), 8_192


def run(rounds: int, threads: int) -> dict:
    """All kinds in turns: a generation in every round for the times, bytes at its end; perplexity once."""
    import torch

    torch.set_num_threads(threads)
    model = load_model(device="cpu", dtype="float32")
    ids = load_tokenizer().encode(speeches()["2026-Trump-1"])
    sides: dict[str, dict] = {spec: {"itl_s": []} for spec in SPECS}
    for number in range(rounds + 1):
        for spec, side in sides.items():
            wait_for_quiet()
            itl, held = decode(model, spec, ids[:N_PAST])
            if number:
                side["itl_s"].append(itl)
            side["bytes_held"] = held
    for spec, side in sides.items():
        side["bytes_needed"] = make_cache(spec, model.config, model.dtype, model.device).bytes_for(N_PAST + N_NEW)
        side["perplexity"] = perplexity(model, ids[:N_SCORED], PROTOCOL, cache=spec).value
    protocol = f"window {PROTOCOL.window}, stride {PROTOCOL.stride}, no BOS, {N_SCORED:,} tokens of speech 2026-Trump-1"
    return {"model": model.name, "threads": threads, "rounds": rounds, "n_past": N_PAST, "n_new": N_NEW,
            "protocol": protocol, "sides": sides}  # fmt: skip


def decode(model, spec: str, prompt: list[int]) -> tuple[float, int]:
    """Median seconds between N_NEW tokens after a prompt, and the bytes that the cache held at the end."""
    engine = Engine(model, cache=spec)
    with engine.stream(prompt, SamplingParams(max_tokens=N_NEW, temperature=0, ignore_eos=True)) as stream:
        gaps, held = [], 0
        for token in stream:
            gaps.append(token.seconds)
            held = engine.cache.nbytes or held  # the last token closes its slot
    return median(gaps[1:]), held
