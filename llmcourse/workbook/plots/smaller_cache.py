"""Figures of lesson 08: what a cache is made of, what its smaller forms cost, and what a window sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from .style import COLOURS, HATCHES, Picture, fill, finish, panel, styled

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_STYLES = (  # colour by meaning, and a line style that a grey printer keeps
    ("reference", "-", ""), ("prefill", "--", "o"), ("chosen", "-", "s"), ("decode", ":", "^"),
)  # fmt: skip


@styled
def keys_and_values(keys, values, layer: int, head: int) -> Picture:
    """One head's keys beside its values: a row for each token, a column for each channel. Both [T, D]."""
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    reach = max(float(keys.abs().max()), float(values.abs().max()))
    pair = figure.subplots(1, 2, sharey=True)
    for axes, (name, x) in zip(pair, [("Keys", keys), ("Values", values)]):
        image = axes.imshow(x.numpy(), aspect="auto", cmap="PuOr", vmin=-reach, vmax=reach, interpolation="nearest")
        axes.set(title=f"{name} of layer {layer}, head {head}", xlabel="channel")
        axes.grid(False)
    figure.colorbar(image, ax=pair, label="value of a channel (no unit), one scale for both", pad=0.02)
    figure.axes[0].set_ylabel("token")
    spreads = {name: float(x.abs().mean(0).max() / x.abs().mean()) for name, x in [("keys", keys), ("values", values)]}
    return Picture(figure, f"Two fields of shades, {len(keys)} tokens by {keys.shape[1]} channels. The strongest channel of "
                           f"the keys is {spreads['keys']:.1f} times as large as the mean one, from top to bottom. "
                           f"Among the values it is {spreads['values']:.1f} times.")


@styled
def rounded(true, back, bits: int, who: str, group: int) -> Picture:
    """Numbers and what is left of them, between the marks of each group.

    true, back: [m] each; who: what they are, for the title; group: so many of them share their marks.
    """
    axes = panel(7.5, 3.2, f"{who} in {bits} bits", x="place in the group", y="value")
    places = range(len(true))
    for start in range(0, len(true), group):
        mine = true[start : start + group]
        low, most = float(mine.min()), 2**bits - 1
        marks = [low + code * (float(mine.max()) - low) / most for code in range(most + 1)]
        axes.hlines(marks, start - 0.5, start + len(mine) - 0.5, color="#BBBBBB", linewidth=0.6, zorder=1)
    axes.grid(False)
    axes.step(places, back, where="mid", color=COLOURS["chosen"], label="turned back from its code")
    axes.plot(places, true, ".", color=COLOURS["reference"], label="the number itself")
    axes.legend(loc="upper right", ncols=2)
    low, high = float(true.min()), float(true.max())
    axes.set_ylim(low - 0.1 * (high - low or 1), high + 0.3 * (high - low or 1))
    error = (true - back).abs()
    return finish(axes, f"{len(true)} points and a stepped line between {2**bits} marks a group: {who} in {bits} bits. The largest error is "
                        f"{error.max():.3f}, the mean {error.mean():.3f}; the numbers reach from {low:.2f} to {high:.2f}.")


@styled
def cache_quality(points: Mapping[str, tuple[float, float]]) -> Picture:
    """What each kind of cache costs in quality. points: spec → (bits a number, scales included; rise of perplexity in %)."""
    axes = panel(7.2, 3.6, "Bits and surprise", x="bits for each number, scales included", y="rise of perplexity (%)")
    for spec, (bits, rise) in points.items():
        ours = spec in ("int8", "int4")
        mark, role = ("s", "chosen") if ours else ("o", "reference")
        axes.plot(bits, rise, mark, color=COLOURS[role], ms=7)
        axes.annotate(spec, (bits, rise), xytext=(7, 4), textcoords="offset points", size=8.5)
    axes.axhline(0, color=COLOURS["reference"], linewidth=0.8)
    axes.set_xlim(0, 1.25 * max(bits for bits, _ in points.values()))
    axes.margins(y=0.2)
    said = "; ".join(f"{spec}: {bits:.2f} bits, {rise:+.1f} %" for spec, (bits, rise) in points.items())
    return finish(axes, f"Points, bits to the right and rise of perplexity upwards. {said}.")


@styled
def surprise_by_position(nll: Mapping[str, Sequence[float]], bin: int, window: int) -> Picture:
    """How much more surprised several caches are than the one that keeps everything, along a text.

    nll: name → one mean difference for each `bin` tokens, in nats.
    """
    axes = panel(7.8, 3.6, "What forgetting costs", x="position (tokens)", y="surprise, above everything kept\n(nats per token)")
    axes.axhline(0, color=COLOURS["reference"], linewidth=1)
    for (name, means), (role, line, mark) in zip(nll.items(), _STYLES[1:]):
        centres = [bin * (i + 0.5) for i in range(len(means))]
        axes.plot(centres, means, linestyle=line, marker=mark, ms=4, color=COLOURS[role], label=name)
    axes.axvline(window, color=COLOURS["reference"], linewidth=0.8, linestyle=":")
    axes.text(window, axes.get_ylim()[1], " the window is full", va="top", size=8.5)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=len(nll))
    after = {name: [m for i, m in enumerate(means) if bin * i >= window] for name, means in nll.items()}
    said = "; ".join(f"{name} {sum(means) / len(means):.2f}" for name, means in after.items())
    return finish(axes, f"Lines over the positions of a text: surprise above that of the cache that keeps everything. Up to "
                        f"position {window} they are at 0; after it the mean is: {said} nats per token.")


@styled
def sink_share(shares: Sequence[float]) -> Picture:
    """How much attention goes to the very first token, by layer. shares: [L] from 0 to 1."""
    axes = panel(7.2, 3.0, "Attention that the first token receives", x="layer", y="share of all weight (%)")
    axes.bar(range(len(shares)), [100 * share for share in shares], **fill("prefill"))
    axes.grid(axis="x", visible=False)
    most = max(range(len(shares)), key=shares.__getitem__)
    mean = 100 * sum(shares) / len(shares)
    return finish(axes, f"A bar for each of {len(shares)} layers. The mean is {mean:.0f} %, the most "
                        f"{100 * shares[most]:.0f} % in layer {most}.")


@styled
def window_mask(tokens: int, window: int, sinks: int) -> Picture:
    """Which earlier tokens each token sees: the sinks, its window, and what lies between is forgotten."""
    from matplotlib.patches import Patch, Rectangle
    from matplotlib.ticker import MaxNLocator

    axes = panel(5.6, 4.6, "Who sees whom", x="token that is seen", y="token that looks")
    for p in range(tokens):
        for j in range(p + 1):
            role = "prefill" if j < sinks else "chosen" if j > p - window else "other"
            axes.add_patch(Rectangle((j - 0.46, p - 0.46), 0.92, 0.92, linewidth=0, **_face(role)))
    axes.set(xlim=(-0.6, tokens - 0.4), ylim=(tokens - 0.4, -0.6), aspect="equal")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(False)
    labels = [("prefill", "a sink"), ("chosen", "in the window"), ("other", "forgotten")]
    axes.legend(handles=[Patch(label=label, **_face(role)) for role, label in labels], loc="upper right")
    kept = min(tokens, window + sinks)
    return finish(axes, f"A triangle of {tokens} rows. The last token sees {kept} of {tokens}: the first "
                        f"{min(sinks, tokens)} and the newest {min(window, tokens)}; {tokens - kept} are forgotten.")


@styled
def kept_token(words: Sequence[str], kept: int, found: Sequence[tuple[float, float]], and_the_first: bool) -> Picture:
    """What each early token is good for when it is the one that is kept beside a window that has passed.

    words: the early tokens. kept: the one to point at. found: of each, (probability of the name, mean surprise in nats).
    """
    figure = Figure(figsize=(8.2, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    beside = " beside the first" if and_the_first else ""
    for axes, values, label in ((left, [100 * name for name, _ in found], "probability of the name (%)"),
                                (right, [surprise for _, surprise in found], "surprise at the rest (nats per token)")):
        bars = axes.barh(range(len(words)), values, color=[COLOURS["chosen" if i == kept else "other"] for i in range(len(words))])
        axes.bar_label(bars, [f" {value:.2g}" if value < 10 else f" {value:.0f}" for value in values], size=8.5)
        axes.set(xlabel=label, xlim=(0, 1.15 * max(values)))
        axes.grid(axis="y", visible=False)
    left.set_yticks(range(len(words)), [f"{i}: {word}" for i, word in enumerate(words)])
    left.set(ylim=(len(words) - 0.5, -0.5), ylabel=f"token kept{beside}")
    left.set_title(f"Kept{beside}: “{words[kept]}”")
    said = "; ".join(f"{word}: {100 * name:.2g} %, {surprise:.2f} nats" for word, (name, surprise) in zip(words, found))
    return Picture(figure, f"Two rows of bars, by the token that is kept{beside}: probability of the name, and surprise at the "
                           f"rest. {said}. Pointed at: {words[kept]}.")


@styled
def cache_memory(ways: Mapping[str, Sequence[float]], contexts: Sequence[int], memory: float) -> Picture:
    """Bytes of one request's cache. ways: name → bytes at each context; memory: bytes of a card, for a line."""
    axes = panel(7.8, 0.45 * len(ways) + 1.6, "The cache of one request", x="bytes (logarithmic)")
    for i, (context, (mark, role)) in enumerate(zip(contexts, (("o", "decode"), ("s", "attention"), ("^", "prefill")))):
        axes.plot([values[i] for values in ways.values()], range(len(ways)), mark, color=COLOURS[role], ms=8,
                  label=f"{context:,} tokens", linestyle="none", zorder=3)
    for row, values in enumerate(ways.values()):
        axes.plot([min(values), max(values)], [row, row], color=COLOURS["other"], linewidth=2, zorder=1)
        for place in dict.fromkeys(values):
            axes.annotate(amount(place), (place, row), xytext=(0, 8), textcoords="offset points", ha="center", size=8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(ways)), list(ways))
    axes.axvline(memory, color=COLOURS["reference"], linewidth=1, zorder=0)
    axes.text(memory, -0.85, f" a card of {amount(memory)}", size=8.5)
    axes.set(ylim=(len(ways) - 0.5, -1.2), xlim=(None, 6 * max(values[-1] for values in ways.values())))
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=len(contexts))
    said = "; ".join(f"{name}: {', '.join(amount(value) for value in values)}" for name, values in ways.items())
    return finish(axes, f"A row of points for each way, at {', '.join(f'{context:,}' for context in contexts)} tokens. {said}.")


def _face(role: str) -> dict[str, str]:
    """As `fill`, for patches, whose `color` would paint the hatching as well."""
    return {"facecolor": COLOURS[role], "hatch": HATCHES.get(role, ""), "edgecolor": "white"}


def amount(n_bytes: float) -> str:
    """Bytes in the unit that suits them: 3.2 GB."""
    size, unit = next(((size, unit) for size, unit in _UNITS if n_bytes >= size), (1, "B"))
    return f"{n_bytes / size:.3g} {unit}"
