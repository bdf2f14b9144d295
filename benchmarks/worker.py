"""The far end of a benchmark: one side, alone in its process, that answers requests over stdin and stdout.

Both sides stay loaded while the rounds alternate between them, so that a slow minute of the machine hits both.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable

Generate = Callable[[list[int], int], tuple[list[float], list[int]]]


def arguments(description: str) -> argparse.Namespace:
    """MODEL, dtype and threads, the same for every worker."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("model")
    parser.add_argument("dtype", help="float32, bfloat16, or a label where the file decides")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--mode", default="")
    return parser.parse_args()


def serve(load: Callable[[], tuple[Generate, dict]]) -> None:
    """Load, say what was loaded and how long it took, then answer one JSON line with another until stdin ends.

    load: returns a function and facts to report. The function takes prompt ids and a number of tokens, generates them
        greedily, never stopping early, and returns the moments (perf_counter, seconds) at which each was known, and the
        tokens. The clock starts when it is called.
    """
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print must not mix with the answers
    start = time.perf_counter()
    generate, facts = load()
    print(json.dumps({"load_s": time.perf_counter() - start, **facts}), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        moments, ids = generate(request["ids"], request["n"])
        times = [moments[0] - start, *(after - before for before, after in zip(moments, moments[1:]))]
        print(json.dumps({"ttft_s": times[0], "itl_s": times[1:], "ids": ids}), file=out, flush=True)
