"""The map of lesson 06: what a decode step waits for, over requests and context."""

from __future__ import annotations

from llmcourse.measure.known_models import KnownModel
from llmcourse.measure.roofline import Ceilings, kv_bytes, step_work, weight_bytes_read

from .style import COLOURS, Picture, finish, panel, styled

REQUESTS = [2**i for i in range(13)]
CONTEXTS = [2**i for i in range(7, 18)]
KV_BITS = 16
REGIMES = (("waits for the weights", "other", "w"), ("waits for keys and values", "decode", "k"),
           ("waits for arithmetic", "attention", "c"))  # fmt: skip


def regime(machine: Ceilings, known: KnownModel, requests: int, context: int, weight_bits: float) -> str:
    """What a decode step over so many requests waits for: "w" weights, "k" keys and values, "c" arithmetic."""
    work = step_work(known.config, [(1, context - 1)] * requests, weight_bits, KV_BITS)
    if machine.bound(work) == "compute":
        return "c"
    weights = weight_bytes_read(known.config, requests, weight_bits)
    return "w" if weights >= kv_bytes(known.config, requests * context, KV_BITS) else "k"


@styled
def bound_map(machine: Ceilings, known: KnownModel, weight_bits: float, name: str) -> Picture:
    """Requests × context, each field coloured by what decode waits for there, with a letter for grey printers."""
    from matplotlib.patches import Patch, Rectangle

    axes = panel(7.2, 4.4, f"{known.name}, weights of {weight_bits:g} bits, on {name}: decode", x="R, requests in the step",
                 y="tokens of context of each")
    fields: dict[str, int] = {}
    colours = {letter: role for _, role, letter in REGIMES}
    for x, requests in enumerate(REQUESTS):
        for y, context in enumerate(CONTEXTS):
            letter = regime(machine, known, requests, context, weight_bits)
            fields[letter] = fields.get(letter, 0) + 1
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=COLOURS[colours[letter]], edgecolor="white"))
            axes.text(x, y, letter, ha="center", va="center", size=8, color="white" if letter == "c" else "black")
    axes.set(xlim=(-0.5, len(REQUESTS) - 0.5), ylim=(-0.5, len(CONTEXTS) - 0.5))
    axes.set_xticks(range(len(REQUESTS)), [f"{n:,}" for n in REQUESTS], size=8)
    axes.set_yticks(range(len(CONTEXTS)), [f"{n:,}" for n in CONTEXTS], size=8)
    axes.grid(False)
    axes.figure.legend(handles=[Patch(facecolor=COLOURS[role], label=f"{letter}: {label}") for label, role, letter in REGIMES],
                       loc="outside lower center", ncols=3)
    longest = {n: max((c for c in CONTEXTS if regime(machine, known, n, c, weight_bits) == "c"), default=None) for n in REQUESTS}
    first = next((n for n in REQUESTS if longest[n]), None)
    said = (f"Arithmetic is what it waits for from {first:,} requests on, and with {REQUESTS[-1]:,} of them up to "
            f"{longest[REQUESTS[-1]]:,} tokens of context" if first else "It waits for arithmetic nowhere on this map")
    return finish(axes, f"A map of {len(REQUESTS)} by {len(CONTEXTS)} fields for {known.name} on {name}, whose ridge point is "
                        f"{machine.ridge:,.0f} FLOP per byte. {said}; {fields.get('w', 0)} fields wait for the weights, "
                        f"{fields.get('k', 0)} for keys and values.")
