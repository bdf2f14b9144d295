"""Worker: llmcourse's engine, with its own defaults. usage: ours.py MODEL float32|bfloat16|native|native-fast [--threads N]
MODEL is a folder, or for native a .gguf file, computed on as it is in the mode fine or fast.
[--mode CACHE]: a kind of cache; contiguous without it."""

from __future__ import annotations

import time

import torch
from worker import arguments, serve

import llmcourse
from llmcourse.engine.engine import Engine
from llmcourse.engine.prompts import IdsOnly
from llmcourse.engine.sampling import SamplingParams
from llmcourse.model.load import load_model
from llmcourse.ops import NUMBA_FAST

args = arguments(__doc__)
torch.set_num_threads(args.threads)


def load():
    """The whole engine: scheduler, cache, model, sampler. Tokenization is in neither side's times."""
    native = args.dtype.startswith("native")
    model = load_model(args.model, quant="native") if native else load_model(args.model, device="cpu", dtype=args.dtype)
    parts = NUMBA_FAST if args.dtype == "native-fast" else None
    engine = Engine(model, parts, tokenizer=IdsOnly(model.config.eos_ids), cache=args.mode or "contiguous")

    def generate(ids: list[int], n: int):
        moments, output = [], []
        for token in engine.stream(ids, SamplingParams(max_tokens=n, temperature=0, ignore_eos=True)):
            moments.append(time.perf_counter())
            output.append(token.id)
        return moments, output

    return generate, {"side": "llmcourse", "version": llmcourse.__version__, "dtype": args.dtype}


serve(load)
