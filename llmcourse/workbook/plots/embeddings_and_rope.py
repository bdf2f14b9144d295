"""Figures of lesson 02: neighbours in the table, vectors that turn, the rotation clocks, their rivals, the other layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, hypot, pi, sin

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import COLOURS, Picture, drawable, fill, finish, panel, styled
from .tints import INK

CLOCK_COLUMNS = 8
FARTHEST = 256  # distance shown by the dial, in tokens
FIRST_POSITIONS = 11  # shown of the layouts: the jump is at the second one


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
    clocks.set(title=f"the hands at position {position}, θ = {theta:,.0f}\n(from the mark, counter-clockwise)", aspect="equal", xticks=[], yticks=[],
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
    return Picture(figure, f"{len(speeds)} clocks, the first ones fast, the last ones nearly still; all began at the mark on "
                           f"the right and turn counter-clockwise. Turns made at position "
                           f"{position}: {turns}. Beside them a curve: the score of {whose} is {here:+.2f} at distance "
                           f"{position}.")


def _clock(axes: Axes, i: int, angle: float, shown: bool) -> None:
    from matplotlib.patches import Circle

    x, y = i % CLOCK_COLUMNS, i // CLOCK_COLUMNS
    axes.add_patch(Circle((x, y), 0.42, facecolor="white", edgecolor="#999999", linewidth=0.8))
    axes.hlines(y, x + 0.34, x + 0.48, color=INK, linewidth=1.6)  # the mark: angle 0
    colour, width = (COLOURS["chosen"], 2.2) if shown else (COLOURS["other"], 1.4)
    axes.plot([x, x + 0.38 * cos(angle)], [y, y - 0.38 * sin(angle)], color=colour, linewidth=width, solid_capstyle="round")
    axes.text(x - 0.44, y - 0.33, str(i), size=6.5, color=INK, ha="center", va="center")


@styled
def key_pairs(lengths: Sequence[float], heads: Sequence[int], context: int, theta: float) -> Picture:
    """Which pairs of channels the keys use. lengths: of the keys' mean, by pair; heads: in how many it is the largest.

    Pairs that make a full turn within `context` tokens stand apart from those that never do.
    """
    n = len(lengths)
    slow = [2 * pi * theta ** (i / n) > context for i in range(n)]
    figure = Figure(figsize=(9.2, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, values, title, label in ((left, lengths, "How long the keys' common part is", "length (mean over heads)"),
                                       (right, heads, "Where it is longest", f"heads (of {sum(heads)})")):
        for never, role, name in ((False, "chosen", "comes round in the context"), (True, "prefill", "never comes round")):
            some = [i for i in range(n) if slow[i] == never]
            axes.bar(some, [values[i] for i in some], label=name, **fill(role))
        axes.set(title=title, xlabel="pair i (fast to slow)", ylabel=label)
        axes.grid(axis="x", visible=False)
    left.legend(loc="upper left")
    used = [i for i in range(n) if heads[i]]
    among_slow = sum(count for count, never in zip(heads, slow) if never)
    most = max(range(n), key=lengths.__getitem__)
    return Picture(figure, f"Bars over {n} pairs, low for the fast ones and high for some slow ones: {lengths[0]:.1f} in pair 0, "
                           f"{lengths[most]:.1f} in pair {most}. Of {sum(heads)} heads all have their longest in pairs "
                           f"{used[0]} to {used[-1]}, {among_slow} in one that never comes round within {context:,} tokens.")


@styled
def looked_back(hits: Mapping[str, Sequence[float]], taught: int, first: int) -> Picture:
    """How often a layer names the right token, position by position. hits: way → shares from position `first` on.

    taught: length of the texts that it learned from, in tokens.
    """
    axes = panel(7.0, 3.4, "Taught on short texts, examined on long ones", x="position (tokens)", y="right answers (%)")
    looks = (("reference", ":"), ("decode", "--"), ("prefill", "-."), ("chosen", "-"))
    for (way, shares), (role, line) in zip(hits.items(), looks):
        axes.plot(range(first, first + len(shares)), [100 * share for share in shares], line, color=COLOURS[role],
                  linewidth=2.2, label=way)
    axes.axvline(taught, color=COLOURS["reference"], linewidth=0.8)
    axes.text(taught + 1, 108, "never met in training →", size=9, color=INK, va="center")
    axes.set_ylim(-3, 116)
    axes.legend(loc="center right", frameon=True, facecolor="white", edgecolor="none", framealpha=1)
    said = []
    for way, shares in hits.items():
        inside, beyond = shares[: taught - first], shares[taught - first :]
        said.append(f"{way}: {sum(inside) / len(inside):.0%} right up to position {taught - 1}, "
                    f"{sum(beyond) / len(beyond):.0%} beyond")
    return finish(axes, f"Lines over positions {first} to {first + len(next(iter(hits.values()))) - 1}. {'; '.join(said)}.")


@styled
def layouts(differences: Mapping[str, Sequence[float]]) -> Picture:
    """How far the logits are from the right ones at the first positions. differences: what was done → one number each."""
    axes = panel(6.6, 3.3, "The wrong rotation, position by position", x="position (tokens)",
                 y="largest difference of a logit")
    first = {name: list(values[:FIRST_POSITIONS]) for name, values in differences.items()}
    width = 0.8 / len(first)
    for i, ((name, values), role) in enumerate(zip(first.items(), ("chosen", "prefill", "other"))):
        places = [place + (i - (len(first) - 1) / 2) * width for place in range(len(values))]
        axes.bar(places, values, width, label=name, **fill(role))
    axes.set_xticks(range(max(map(len, first.values()))))
    axes.set_ylim(0, 1.25 * max(max(values) for values in first.values()))
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper right", ncols=len(first))
    said = "; ".join(f"{name}: {values[0]:.4f} at position 0, {values[1]:.1f} at position 1, {max(values):.1f} at most"
                     for name, values in first.items())
    return finish(axes, f"Bars for the first positions: none at 0, tall at once. {said}.")
