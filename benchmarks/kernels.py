"""One product, [1536, 576] in Q4_1 times one row, from the plain loop to the tile: microseconds on one thread.

In the project's folder: python -m benchmarks.kernels. Prints the table of docs/kernels.md and writes it there.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import quantize

from llmcourse.ops.numba import plain, q4_1
from llmcourse.ops.numba.activations import Activations
from llmcourse.ops.numba.linear import linear

ROWS, INPUTS, TURNS = 1536, 576, 60
BEGIN, END = "<!-- kernels: begin -->", "<!-- kernels: end -->"


def main() -> None:
    """Measure in turns, and write the table."""
    draw = np.random.default_rng(0)
    raw = quantize(draw.standard_normal((ROWS, INPUTS), dtype=np.float32), GGMLQuantizationType.Q4_1)
    blocks = raw.reshape(ROWS, -1, 20)
    scale, low = (np.ascontiguousarray(blocks[..., i : i + 2]).view(np.float16)[..., 0].astype(np.float32) for i in (0, 2))
    codes = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], -1)
    x = draw.standard_normal((8, INPUTS), dtype=np.float32)
    grouped = x[0].reshape(-1, 32)
    x_scale = np.abs(grouped).max(1) / np.float32(127)
    x_codes = np.rint(grouped / x_scale[:, None]).astype(np.int8)
    x_total = x_scale * x_codes.sum(1, dtype=np.float32)
    rows, tiles = plain.pack(scale, low, codes), q4_1.pack(raw)
    y, wide, one, eight = np.empty(ROWS, np.float32), np.empty(8 * ROWS, np.float32), *(Activations.room(n, INPUTS) for n in (1, 8))
    one.values[:], eight.values[:] = x[0], x.reshape(-1)
    ways = {
        "1. plain loop, every weight expanded": (lambda: plain.one_by_one(scale, low, codes, x_scale, x_codes, y), 1),
        "2. whole numbers, 64 rows side by side": (lambda: plain.by_rows(*rows, x_scale, x_total, x_codes, y), 1),
        "3. tiles, fine": (lambda: linear(tiles, one, 1, INPUTS, y, (0, 0)), 1),
        "3. tiles, fast": (lambda: linear(tiles, one, 1, INPUTS, y, (0,)), 1),
        "4. a panel of eight columns, fast, for each": (lambda: linear(tiles, eight, 8, INPUTS, wide, (0,)), 8),
    }
    seconds = {name: [] for name in ways}
    for _ in range(TURNS + 1):
        for name, (work, columns) in ways.items():
            start = perf_counter()
            work()
            seconds[name].append((perf_counter() - start) / columns)
    best = {name: min(times[1:]) for name, times in seconds.items()}
    first = next(iter(best.values()))
    lines = ["| | microseconds | times as fast as the first |", "|---|---|---|"]
    lines += [f"| {name} | {1e6 * value:,.1f} | {first / value:,.1f} |" for name, value in best.items()]
    text = "\n".join(lines)
    print(text)
    page = Path(__file__).parents[1] / "docs" / "kernels.md"
    before, after = page.read_text("utf-8").split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after.split(END)[1]}", "utf-8")


if __name__ == "__main__":
    main()
