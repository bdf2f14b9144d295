"""Figures of lesson 02: neighbours in the table, vectors that turn, the rotation clocks, and what the other layout does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, hypot, pi, sin

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import COLOURS, Picture, drawable, fill, finish, panel, styled
from .tints import INK

CLOCK_COLUMNS = 8
FARTHEST = 256  # distance shown by the dial, in tokens


@styled
def neighbours(tokens: Sequence[str], cosines: Sequence[float], usual: float) -> Picture:
    """The nearest rows of a token, nearest first. usual: the mean cosine of two tokens that nobody chose."""
    axes = panel(6, 0.3 * len(tokens) + 1.1, f"The rows nearest to {drawable(tokens[0])}", x="cosine")
    bars = axes.barh(range(len(tokens)), cosines, color=[COLOURS["other"]] + [COLOURS["chosen"]] * (len(tokens) - 1))
    axes.bar_label(bars, [f" {cosine:.2f}" for cosine in cosines])
    axes.axvline(usual, color=COLOURS["reference"], linestyle=":", linewidth=1.4)
    axes.set_yticks(range(len(tokens)), [drawable(token) for token in tokens], family="DejaVu Sans Mono")
    axes.set(ylim=(len(tokens) - 0.4, -0.6), xlim=(0, 1.12))
    axes.grid(axis="y", visible=False)
    near = ", ".join(f"{token} {cosine:.2f}" for token, cosine in zip(tokens, cosines))
    return finish(axes, f"Bars, longest first: {near}. A dotted line at {usual:.2f}: two tokens at random.")


@styled
def cosines(values: Sequence[float], pairs: Mapping[str, float]) -> Picture:
    """How near two rows are that nobody chose, and where some chosen pairs stand. pairs: name → cosine."""
    axes = panel(6.6, 3.2, "Two tokens at random, and some pairs that mean something", x="cosine of the two rows",
                 y=f"pairs (of {len(values):,})")
    counts, _, _ = axes.hist(values, bins=60, **fill("other"))
    top = max(counts)
    for place, (name, value) in enumerate(sorted(pairs.items(), key=lambda pair: pair[1])):
        height = top * (1.12 + 0.15 * (len(pairs) - 1 - place))  # the leftmost is the highest: no label crosses a line
        axes.plot([value, value], [0, height], color=COLOURS["chosen"], linewidth=1.6)
        axes.text(value, height, f" {drawable(name)} {value:.2f}", size=9, va="center", color=INK)
    axes.set(ylim=(0, (1.2 + 0.15 * len(pairs)) * top), xlim=(min(values), 1.35), xticks=[-0.5, 0, 0.5, 1])
    mean = sum(values) / len(values)
    said = "; ".join(f"{name} {value:.2f}" for name, value in pairs.items())
    return finish(axes, f"A hill of bars around {mean:.2f}, and above it lines for chosen pairs: {said}.")


@styled
def turned(q: tuple[float, float], k: tuple[float, float], places: Sequence[tuple[int, int]], speed: float) -> Picture:
    """A query and a key in the plane, turned to several pairs of positions. speed: radians for each token.

    places: (position of q, position of k) for each panel; over each stands the score q·k after the turn.
    """
    reach = 1.5 * max(hypot(*q), hypot(*k))
    figure = Figure(figsize=(2.6 * len(places), 2.9), layout="constrained")
    said = []
    for axes, (m, n) in zip(figure.subplots(1, len(places), squeeze=False)[0], places):
        a, b = _turn(q, m * speed), _turn(k, n * speed)
        _arrow(axes, a, "chosen", f"q at {m}")
        _arrow(axes, b, "reference", f"k at {n}")
        score = a[0] * b[0] + a[1] * b[1]
        axes.set(title=f"q·k = {score:.3f}", xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal",
                 xlabel="first channel", ylabel="second channel")
        said.append(f"q at {m}, k at {n}: {score:.3f}")
    return Picture(figure, "Two arrows in each panel, a query and a key, turned to their positions. "
                           f"Scores: {'; '.join(said)}.")


def _turn(point: tuple[float, float], angle: float) -> tuple[float, float]:
    x, y = point
    return x * cos(angle) - y * sin(angle), y * cos(angle) + x * sin(angle)


def _arrow(axes: Axes, to: tuple[float, float], role: str, name: str) -> None:
    axes.annotate("", to, (0, 0), arrowprops={"arrowstyle": "-|>", "color": COLOURS[role], "linewidth": 2, "shrinkA": 0,
                                              "shrinkB": 0, "linestyle": "-" if role == "chosen" else "--"})
    axes.text(1.25 * to[0], 1.25 * to[1], name, size=9, color=INK, ha="center", va="center")


@styled
def wavelengths(head_dim: int, theta: float, context: int) -> Picture:
    """Tokens for one full turn of each pair of channels; a line marks the model's context."""
    lengths = [2 * pi * theta ** (2 * i / head_dim) for i in range(head_dim // 2)]
    axes = panel(6.4, 3.4, f"How long each pair needs for one turn (D = {head_dim}, θ = {theta:,.0f})", x="pair i",
                 y="tokens for a full turn (logarithmic)")
    done = [i for i, length in enumerate(lengths) if length <= context]
    slow = [i for i, length in enumerate(lengths) if length > context]
    axes.semilogy(done, [lengths[i] for i in done], "o", color=COLOURS["chosen"], label="turns at least once")
    axes.semilogy(slow, [lengths[i] for i in slow], "s", color=COLOURS["prefill"], label="never comes round")
    axes.axhline(context, color=COLOURS["reference"], linestyle=":", label=f"the context, {context:,} tokens")
    axes.legend(loc="upper left")
    return finish(axes, f"Points on a rising line: pair 0 needs {lengths[0]:.1f} tokens for a turn, the last "
                        f"{lengths[-1]:,.0f}. {len(slow)} of {len(lengths)} pairs need more than the context, "
                        f"{context:,} tokens.")


@styled
def rope_dial(position: int, theta: float = 100_000.0, pair: int | str = "all", head_dim: int = 64) -> Picture:
    """Where the hand of every pair stands at a position, and what that makes of a score at that distance.

    pair: a number from 0, drawn in colour, whose share of the score is shown; "all" for the sum of all pairs.
    The score is that of a query and a key that are equal to 1 in every channel, divided by D, so that it is 1 at distance 0.
    """
    speeds = [theta ** (-2 * i / head_dim) for i in range(head_dim // 2)]
    shown = range(len(speeds)) if pair == "all" else [int(pair)]
    figure = Figure(figsize=(9.6, 3.5), layout="constrained")
    clocks, curve = figure.subplots(1, 2, width_ratios=(1.15, 1))
    for i, speed in enumerate(speeds):
        _clock(clocks, i, position * speed, i in shown)
    rows = -(-len(speeds) // CLOCK_COLUMNS)
    clocks.set(title=f"the hands at position {position}, θ = {theta:,.0f}", aspect="equal", xticks=[], yticks=[],
               xlim=(-0.6, CLOCK_COLUMNS - 0.4), ylim=(rows - 0.4, -0.6))
    clocks.grid(False)
    clocks.spines[["left", "bottom"]].set_visible(False)
    distances = range(FARTHEST + 1)
    scores = [sum(cos(distance * speeds[i]) for i in shown) / len(shown) for distance in distances]
    here = sum(cos(position * speeds[i]) for i in shown) / len(shown)
    curve.plot(distances, scores, color=COLOURS["chosen"], linewidth=1.5)
    curve.axhline(0, color=COLOURS["reference"], linewidth=0.8)
    curve.plot([position], [here], "o", color=COLOURS["prefill"], markersize=9)
    whose = "all pairs" if pair == "all" else f"pair {pair}"
    curve.set(title=f"score of {whose}: {here:+.2f} at distance {position}", xlabel="distance (tokens)",
              ylabel="q·k (1 at distance 0)", ylim=(-1.1, 1.1), xlim=(-4, max(FARTHEST, position) + 4))
    turns = ", ".join(f"pair {i} {position * speeds[i] / (2 * pi):.2f}" for i in (0, len(speeds) // 2, len(speeds) - 1))
    return Picture(figure, f"{len(speeds)} clocks, the first ones fast, the last ones nearly still. Turns made at position "
                           f"{position}: {turns}. Beside them a curve: the score of {whose} is {here:+.2f} at distance "
                           f"{position}.")


def _clock(axes: Axes, i: int, angle: float, shown: bool) -> None:
    from matplotlib.patches import Circle

    x, y = i % CLOCK_COLUMNS, i // CLOCK_COLUMNS
    axes.add_patch(Circle((x, y), 0.42, facecolor="white", edgecolor="#999999", linewidth=0.8))
    colour, width = (COLOURS["chosen"], 2.2) if shown else (COLOURS["other"], 1.4)
    axes.plot([x, x + 0.38 * cos(angle)], [y, y - 0.38 * sin(angle)], color=colour, linewidth=width, solid_capstyle="round")
    axes.text(x - 0.44, y - 0.33, str(i), size=6.5, color=INK, ha="center", va="center")


@styled
def layouts(differences: Mapping[str, Sequence[float]]) -> Picture:
    """How far the logits are from the right ones at each position. differences: what was done → one number a position."""
    axes = panel(6.6, 3.3, "The wrong rotation, position by position", x="position (tokens)",
                 y="largest difference of a logit")
    for (name, values), role, line in zip(differences.items(), ("chosen", "reference", "prefill"), ("-", ":", "--")):
        axes.plot(range(len(values)), values, line, color=COLOURS[role], label=name, marker="o", markevery=[0])
    axes.set_ylim(-0.5, 1.3 * max(max(values) for values in differences.values()))
    axes.legend(loc="upper right", ncols=len(differences))
    said = "; ".join(f"{name}: {values[0]:.4f} at position 0, {values[1]:.1f} at position 1, {max(values):.1f} at most"
                     for name, values in differences.items())
    return finish(axes, f"Lines that start at zero and jump up at once. {said}.")
