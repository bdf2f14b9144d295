"""Worker: llama.cpp on a GGUF file, in an environment of its own. usage: peer_llama_cpp.py FILE.gguf NAME [--threads N]

NAME is only a label for the file's quantization, such as q4.
"""

from __future__ import annotations

import time

import llama_cpp
from worker import arguments, serve

args = arguments(__doc__)


def load():
    """One sequence, greedy, all of llama.cpp's defaults otherwise."""
    model = llama_cpp.Llama(
        model_path=args.model, verbose=False, n_ctx=4096, n_threads=args.threads, n_threads_batch=args.threads
    )

    def generate(ids: list[int], n: int):
        moments, output = [], []
        model.reset()
        for token in model.generate(ids, temp=0.0, reset=True):
            moments.append(time.perf_counter())
            output.append(token)
            if len(output) == n:
                return moments, output

    return generate, {"side": "llama.cpp", "version": llama_cpp.__version__, "dtype": args.dtype}


serve(load)
