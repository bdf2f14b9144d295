"""Tables for people, from results/*.json, put into README.md between its markers."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
_ROWS = {  # measured → its title, and the key of its share of the machine's ceiling
    "prefill": ("prefill of {prefill_tokens} tokens", "mfu"),
    "decode": ("decode, {decode_tokens} tokens after {decode_after}", "mbu"),
    "decode_long": ("decode after {long_after} tokens", "mbu_long"),
}


def write_tables(results: Path, readme: Path) -> None:
    """Replace what stands between the markers of `readme` by the tables of all results there are."""
    makers = [
        ("speed.json", speed_tables), ("context.json", context_table), ("caches.json", caches_table),
        ("load.json", load_table), ("startup.json", startup_table),
    ]  # fmt: skip
    found = [(results / name, maker) for name, maker in makers if (results / name).exists()]
    parts = [maker(json.loads(path.read_text("utf-8"))) for path, maker in found]
    text = readme.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    readme.write_text(f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{after}", encoding="utf-8")


def speed_tables(result: dict) -> str:
    """Tokens per second of every side, and our ratio to the peer's better way."""
    ceilings = result["ceilings"]
    lines = [
        "### Prefill and decode, tokens per second",
        "",
        f"{result['model']}, {result['threads']} threads (waiting threads spin: ours {result['spin']} times, peers by OpenMP's default), "
        f"medians of {result['rounds']} alternating rounds; {where(result)}. "
        f"Measured ceilings: {ceilings['bytes_per_s'] / 1e9:.1f} GB/s read, "
        f"{ceilings['flops_per_s']['float32'] / 1e9:.0f} GFLOP/s float32, "
        f"{ceilings['flops_per_s']['bfloat16'] / 1e9:.0f} GFLOP/s bfloat16. In brackets: the share reached.",
        "",
        "| | " + " | ".join(title.format(**result) for title, _ in _ROWS.values()) + " |",
        "|---|" + "---|" * len(_ROWS),
    ]
    for name, side in result["sides"].items():
        cells = [cell(median(side[key]), side.get(share)) for key, (_, share) in _ROWS.items()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    heading = "| ratio: median over rounds (lowest to highest) | " + " | ".join(_ROWS) + " |"
    lines += ["", heading, "|---|" + "---|" * len(_ROWS)]
    sides = result["sides"]
    for dtype in ("float32", "bfloat16"):
        ours, peers = sides[f"llmcourse {dtype}"], peers_of(sides, dtype)
        cells = [ratio(ours[key], best(peers, key)) for key in _ROWS]
        against = "transformers float32" if dtype == "float32" else "transformers' better dtype"
        lines.append(f"| llmcourse {dtype} over {against} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def peers_of(sides: dict, dtype: str) -> list[dict]:
    """transformers in its ways: in float32 only against float32, in every dtype against bfloat16."""
    return [
        side for side in sides.values()
        if side["side"] == "transformers" and (dtype == "bfloat16" or side["dtype"] == "float32")
    ]  # fmt: skip


def best(sides: list[dict], key: str) -> list[float]:
    """The rounds of the side with the highest median."""
    return max((side[key] for side in sides), key=median)


def ratio(ours: list[float], theirs: list[float]) -> str:
    """Median, lowest and highest of the rounds' ratios."""
    ratios = [a / b for a, b in zip(ours, theirs)]
    return f"**{median(ratios):.2f}×** ({min(ratios):.2f} to {max(ratios):.2f})"


def cell(value: float, share: float | None) -> str:
    """Tokens per second, and the share of the ceiling where it is known."""
    digits = 0 if value >= 100 else 1
    return f"{value:,.{digits}f}" + ("" if share is None else f" ({share:.0%})")


def context_table(result: dict) -> str:
    """Milliseconds from one token to the next at each context, with the cache and without, and how many times faster."""
    contexts = [str(n) for n in result["contexts"]]
    kept, anew = ({n: 1000 * median(result["itl_s"][cache][n]) for n in contexts} for cache in ("contiguous", "none"))
    lines = [
        "### ITL against the context, milliseconds",
        "",
        f"{result['model']}, {result['dtype']}, {result['threads']} threads, medians; {where(result)}.",
        "",
        "| tokens so far | " + " | ".join(f"{int(n):,}" for n in contexts) + " |",
        "|---|" + "---|" * len(contexts),
        "| with the KV cache | " + " | ".join(f"{kept[n]:,.1f}" for n in contexts) + " |",
        "| without | " + " | ".join(f"{anew[n]:,.0f}" for n in contexts) + " |",
        "| | " + " | ".join(f"**{anew[n] / kept[n]:.1f}×**" for n in contexts) + " |",
    ]
    return "\n".join(lines)


def caches_table(result: dict) -> str:
    """Bytes, time and perplexity of every kind of cache, against the one that keeps everything."""
    sides, whole = result["sides"], result["sides"]["contiguous"]
    lines = [
        "### KV caches",
        "",
        f"{result['model']}, float32, {result['threads']} threads; {where(result)}. Bytes after {result['n_past']:,} + "
        f"{result['n_new']} tokens: needed, and held with room for more. ITL: median of {result['rounds']} rounds. "
        f"Perplexity: {result['protocol']}.",
        "",
        "| cache | needed | held | of contiguous | ITL (ms) | perplexity | |",
        "|---|---|---|---|---|---|---|",
    ]
    for spec, side in sides.items():
        rise, share = side["perplexity"] / whole["perplexity"] - 1, side["bytes_needed"] / whole["bytes_needed"]
        lines.append(
            f"| `{spec}` | {side['bytes_needed'] / 1e6:.1f} MB | {side['bytes_held'] / 1e6:.1f} MB | {share:.0%} | "
            f"{1000 * median(side['itl_s']):.1f} | {side['perplexity']:.2f} | {rise:+.1%} |"
        )
    return "\n".join(lines)


def load_table(result: dict) -> str:
    """Seconds until a model is loaded."""
    return seconds_table("### Loading the default model, seconds", result)


def startup_table(result: dict) -> str:
    """Seconds of whole processes."""
    return seconds_table("### Starting, seconds", result)


def seconds_table(title: str, result: dict) -> str:
    """Median, lowest and highest of each row."""
    lines = [title, "", f"{where(result)}.", "", "| | median | lowest to highest |", "|---|---|---|"]
    for name, times in result["seconds"].items():
        lines.append(f"| {name} | {median(times):.2f} | {min(times):.2f} to {max(times):.2f} |")
    return "\n".join(lines)


def where(result: dict) -> str:
    """The machine and the day, in a few words."""
    machine = result["machine"]
    return f"{machine['cpu']}, {machine['cores']} cores, torch {machine['torch']}, {result['date'][:10]}"
