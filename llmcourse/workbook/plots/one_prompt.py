"""Figures of lesson 00: a token's vector, the next token's candidates, and how long each token took."""

from __future__ import annotations

from collections.abc import Sequence

from .style import COLOURS, Picture, drawable, fill, finish, panel, shortened, styled
from .tints import INK


@styled
def vectors(rows: Sequence[Sequence[float]], tokens: Sequence[str]) -> Picture:
    """Numbers as shades: one row for each token. rows: [n, columns] of floats; tokens: n labels."""
    axes = panel(7.5, 0.42 * len(rows) + 1.1, "One row of numbers for each token", x="position in the vector")
    reach = max(abs(value) for row in rows for value in row)
    image = axes.imshow(rows, aspect="auto", cmap="PuOr", vmin=-reach, vmax=reach, interpolation="nearest")
    axes.set_yticks(range(len(tokens)), [drawable(token) for token in tokens], family="DejaVu Sans Mono")
    axes.grid(False)
    axes.figure.colorbar(image, ax=axes, label="value", pad=0.02)
    first = ", ".join(f"{value:+.2f}" for value in rows[0][:3])
    return finish(axes, f"A band of shades for each of {len(rows)} tokens ({' '.join(tokens)}), {len(rows[0])} numbers "
                        f"wide. No two bands are alike; the first begins {first}.")


@styled
def next_token(tokens: Sequence[str], probabilities: Sequence[float]) -> Picture:
    """The likeliest next tokens, best first; probabilities from 0 to 1."""
    axes = panel(6, 0.34 * len(tokens) + 1.1, "The likeliest next tokens", x="probability (%)")
    percent = [100 * p for p in probabilities]
    colours = [COLOURS["chosen"]] + [COLOURS["other"]] * (len(tokens) - 1)
    bars = axes.barh(range(len(tokens)), percent, color=colours, height=0.7)
    axes.bar_label(bars, [f" {p:.1f} %" for p in percent])
    axes.set_yticks(range(len(tokens)), [drawable(token) for token in tokens], family="DejaVu Sans Mono")
    axes.invert_yaxis()
    axes.set_xlim(0, max(percent) * 1.15)
    axes.grid(axis="y", visible=False)
    words = ", ".join(f"{token} {p:.1f} %" for token, p in zip(tokens, percent))
    return finish(axes, f"Bars, longest first: {words}.")


@styled
def candidates(steps: Sequence[Sequence[tuple[str, float]]]) -> Picture:
    """For each step the likeliest tokens, best on top, darker where likelier; the best is the one chosen.

    steps: for each step (token, probability) pairs, likeliest first.
    """
    rows = max(map(len, steps))
    title = "What the model considered, step by step"
    axes = panel(1.0 * len(steps) + 0.9, 0.44 * rows + 1.1, title, x="step", y="rank")
    for column, options in enumerate(steps):
        for rank, (token, p) in enumerate(options):
            _cell(axes, column, rank, token, p)
    axes.set(xlim=(-0.5, len(steps) - 0.5), ylim=(rows - 0.5, -0.5))
    axes.set_xticks(range(len(steps)), range(1, len(steps) + 1))
    axes.set_yticks(range(rows), range(1, rows + 1))
    axes.grid(False)
    chosen = "; ".join(f"step {i}: {options[0][0]} {options[0][1]:.0%}, before {options[1][0]} {options[1][1]:.0%}"
                       for i, options in enumerate(steps, 1))
    return finish(axes, f"A table of candidates, one column a step. Chosen: {chosen}.")


def _cell(axes, column: int, rank: int, token: str, p: float) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    shade = [1 - (1 - part) * p for part in to_rgb(COLOURS["chosen"])]
    edge = {"edgecolor": "#CCCCCC", "linewidth": 0.6, "zorder": 1}
    if rank == 0:
        edge = {"edgecolor": INK, "linewidth": 1.6, "zorder": 2}
    axes.add_patch(Rectangle((column - 0.47, rank - 0.43), 0.94, 0.86, facecolor=shade, **edge))
    centred = {"ha": "center", "va": "center", "color": INK, "zorder": 3}
    axes.text(column, rank - 0.13, drawable(shortened(token, 10)), size=8.5, family="DejaVu Sans Mono", **centred)
    axes.text(column, rank + 0.24, f"{p:.0%}", size=7, **centred)


@styled
def waits(
    tokens: Sequence[str], seconds: Sequence[float], title: str = "How long each token took", up_to: float | None = None
) -> Picture:
    """One bar for each output token: the first token's wait (TTFT), then the gaps (ITL).

    seconds: [n]. up_to: seconds that the axis must reach, to compare with another picture.
    """
    axes = panel(max(5.5, 0.34 * len(tokens) + 1.2), 3.2, title, x="output token", y="wait (ms)")
    wait = [1000 * s for s in seconds]
    axes.bar(0, wait[0], label="first token: TTFT", **fill("prefill"))
    axes.bar(range(1, len(wait)), wait[1:], label="later tokens: ITL", **fill("decode"))
    axes.set_xticks(range(len(tokens)), [drawable(shortened(token, 12)) for token in tokens], rotation=60, ha="right",
                    rotation_mode="anchor", family="DejaVu Sans Mono", size=8)
    axes.bar_label(axes.containers[0], [f"{wait[0]:,.0f}"], padding=1)
    axes.set_ylim(0, 1.3 * max(*wait, 1000 * (up_to or 0)))
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper right", ncols=2)
    if len(wait) == 1:
        return finish(axes, f"One bar: the first token came after {wait[0]:,.0f} ms.")
    later = wait[1:]
    return finish(axes, f"Bars over {len(wait)} tokens. The first stands at {wait[0]:,.0f} ms; the later ones lie "
                        f"between {min(later):,.0f} and {max(later):,.0f} ms.")
