"""Figures of lesson 05: what filters keep, where u points, how a text repeats itself, how sure the model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from .style import COLOURS, Picture, drawable, fill, finish, panel, shortened, styled
from .tints import INK, TINTS

WAYS = (  # colours that differ in grey, too
    {"color": COLOURS["prefill"], "hatch": "///"}, {"color": COLOURS["decode"]}, {"color": COLOURS["chosen"], "hatch": ".."},
)  # fmt: skip
LEFT_OUT_BELOW = 1e-9  # a probability that counts as cut: filters leave an exact 0


@styled
def temperatures(names: Sequence[str], probabilities: Mapping[str, Sequence[float]]) -> Picture:
    """One group of bars for each temperature. probabilities: "T = 0.5" → the probability of each name."""
    axes = panel(6.4, 2.9, "The same logits at different temperatures", y="probability (%)")
    shades = ["#005B43", COLOURS["chosen"], "#7FCBB0", "#CDEBDD"]
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        places = [group + (i - (len(names) - 1) / 2) * width for group in range(len(probabilities))]
        bars = axes.bar(places, [100 * each[i] for each in probabilities.values()], width, label=name,
                        color=shades[i % len(shades)], edgecolor="white")
        axes.bar_label(bars, fmt="%.0f", size=8, padding=1)
    axes.set_xticks(range(len(probabilities)), list(probabilities))
    axes.set_ylim(0, 112)
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper right", ncols=len(names))
    words = "; ".join(f"{title}: " + ", ".join(f"{name} {100 * p:.0f} %" for name, p in zip(names, each))
                      for title, each in probabilities.items())
    return finish(axes, f"Groups of bars, flatter from left to right. {words}.")


@styled
def kept_and_cut(
    tokenizer, before: Float[Tensor, "V"], after: Float[Tensor, "V"], title: str = "", shown: int = 16
) -> Picture:
    """The likeliest tokens: grey the model's own probability, green what is left to draw from; cut ones have no green.

    before, after: probabilities of all V tokens, before and after temperature and filters.
    """
    best = before.topk(shown).indices.tolist()
    tokens = tokenizer.tokens(best)
    own, final = ([100 * each[token].item() for token in best] for each in (before, after))
    n_kept = int((after > LEFT_OUT_BELOW).sum())
    kept_mass = before[after > LEFT_OUT_BELOW].sum().item()
    axes = panel(6.6, 0.26 * shown + 1.2, title or "The next token", x="probability (%)")
    axes.barh(range(shown), own, height=0.86, color=COLOURS["other"], label="the model's own")
    axes.barh(range(shown), final, height=0.42, color=COLOURS["chosen"], label="left to draw from")
    axes.set_yticks(range(shown), [drawable(shortened(token, 14)) for token in tokens], family="DejaVu Sans Mono", size=9)
    for place, p in enumerate(final):
        if p <= 100 * LEFT_OUT_BELOW:
            axes.text(own[place], place, " cut", va="center", size=8, color=INK)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * max(*own, *final))
    axes.grid(axis="y", visible=False)
    title = f"{n_kept:,} of {len(before):,} tokens are left,\nthe model gave them {kept_mass:.1%}"
    axes.legend(loc="lower right", title=title)
    words = ", ".join(f"{token} {a:.1f} % → {b:.1f} %" if b > 100 * LEFT_OUT_BELOW else f"{token} {a:.1f} % → cut"
                      for token, a, b in list(zip(tokens, own, final))[:6])
    return finish(axes, f"Two bars for each of the {shown} likeliest tokens, before and after the filters: {words}. In all, "
                        f"{n_kept:,} of {len(before):,} tokens are left; the model gave them {kept_mass:.1%}.")


@styled
def three_filters(
    tokenizer, before: Float[Tensor, "V"], filtered: Mapping[str, Float[Tensor, "V"]], shown: int = 12
) -> Picture:
    """What each filter leaves of one distribution, side by side: grey the model's own probability, green what is left.

    before: probabilities of all V tokens; filtered: name of the filter → probabilities after it.
    """
    best = before.topk(shown).indices.tolist()
    labels = [drawable(shortened(token, 12)) for token in tokenizer.tokens(best)]
    figure = Figure(figsize=(9.4, 0.24 * shown + 1.1), layout="constrained")
    panels, said = figure.subplots(1, len(filtered), sharey=True, sharex=True, squeeze=False)[0], []
    for axes, (name, after) in zip(panels, filtered.items()):
        own, left = ([100 * each[token].item() for token in best] for each in (before, after))
        n_kept = int((after > LEFT_OUT_BELOW).sum())
        axes.barh(range(shown), own, height=0.86, color=COLOURS["other"], label="the model's own")
        axes.barh(range(shown), left, height=0.42, color=COLOURS["chosen"], label="left to draw from")
        axes.set(title=f"{name}: {n_kept} left", xlabel="probability (%)")
        axes.grid(axis="y", visible=False)
        said.append(f"{name} leaves {n_kept} tokens, the best goes from {own[0]:.1f} % to {left[0]:.1f} %")
    panels[0].set_yticks(range(shown), labels, family="DejaVu Sans Mono", size=9)
    panels[0].set_ylim(shown - 0.4, -0.6)
    panels[-1].legend(loc="lower right")
    return Picture(figure, f"Two bars for each of the {shown} likeliest tokens, in one panel a filter. {'; '.join(said)}.")


@styled
def sureness(texts: Mapping[str, Sequence[float]], window: int = 10) -> Picture:
    """How likely each token of a text was to the model, text beside text. texts: name → probabilities, 0 to 1.

    A dot is a token; the line is the mean of the last `window` tokens.
    """
    figure = Figure(figsize=(9.2, 3.1), layout="constrained")
    panels, said = figure.subplots(1, len(texts), sharey=True, squeeze=False)[0], []
    for axes, (name, probabilities) in zip(panels, texts.items()):
        percent = [100 * p for p in probabilities]
        means = [sum(percent[max(0, i + 1 - window) : i + 1]) / min(window, i + 1) for i in range(len(percent))]
        axes.plot(range(len(percent)), percent, "o", markersize=3, color=COLOURS["decode"], label="one token")
        axes.plot(range(len(means)), means, color=COLOURS["reference"], linewidth=1.8, label=f"mean of {window}")
        axes.set(title=name, xlabel="token", ylim=(-3, 103))
        said.append(f"{name}: mean of the first {window} {means[min(window, len(means)) - 1]:.0f} %, of the last {window} "
                    f"{means[-1]:.0f} %")
    panels[0].set_ylabel("probability of the token (%)")
    panels[-1].legend(loc="upper right", frameon=True, facecolor="white", edgecolor="none", framealpha=1)
    return Picture(figure, f"Dots for the tokens and a line for their running mean, one panel a text. {'; '.join(said)}.")


@styled
def stripe(names: Sequence[str], probabilities: Sequence[float], points: Sequence[float]) -> Picture:
    """The unit interval, one piece for each token, in order of ids; points: the numbers u that fall on it."""
    axes = panel(7.0, 1.5, "Where u falls, there the token is", x="u")
    left, pieces = 0.0, []
    for i, (name, p) in enumerate(zip(names, probabilities)):
        axes.barh(0, p, left=left, height=0.6, color=TINTS[i % len(TINTS)], edgecolor=INK, linewidth=0.8)
        if p > 0.03:
            axes.text(left + p / 2, 0, drawable(name), ha="center", va="center", size=9, family="DejaVu Sans Mono")
        pieces.append((left, left + p, name))
        left += p
    axes.plot(points, [0.48] * len(points), "v", color=COLOURS["reference"], markersize=7, clip_on=False)
    axes.set(xlim=(0, 1), ylim=(-0.4, 0.62), yticks=[])
    axes.set_xticks([0, *(piece[1] for piece in pieces[:-1] if piece[1] - piece[0] > 0.03), 1])
    axes.xaxis.set_major_formatter("{x:.2f}")
    axes.spines["left"].set_visible(False)
    axes.grid(False)
    hits = "; ".join(f"u = {u:.2f} falls on {next(n for a, b, n in pieces if a <= u < b or b == left)}" for u in points)
    parts = ", ".join(f"{name} from {a:.2f} to {b:.2f}" for a, b, name in pieces)
    return finish(axes, f"A stripe from 0 to 1 in pieces: {parts}. {hits}.")


@styled
def repeats(shares: Mapping[str, Sequence[float]]) -> Picture:
    """How much of a text was there before. shares: way of choosing → the share of repeated runs of 1, 2, 3 … tokens."""
    axes = panel(6.4, 3.0, "How much of the text stood in it before", x="length of the run (tokens)", y="repeated runs (%)")
    width = 0.8 / len(shares)
    for i, (name, each) in enumerate(shares.items()):
        places = [n + (i - (len(shares) - 1) / 2) * width for n in range(1, len(each) + 1)]
        bars = axes.bar(places, [100 * share for share in each], width, label=name, edgecolor="white", **WAYS[i % len(WAYS)])
        axes.bar_label(bars, fmt="%.0f", size=8, padding=1)
    axes.set_xticks(range(1, max(map(len, shares.values())) + 1))
    axes.set_ylim(0, 100)
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper right")
    words = "; ".join(f"{name}: " + ", ".join(f"{100 * share:.0f} % of the runs of {n}" for n, share in enumerate(each, 1))
                      for name, each in shares.items())
    return finish(axes, f"Bars by length of run. Repeated: {words}.")


@styled
def entropy(tokens: Sequence[str], bits: Sequence[float], named: int = 6) -> Picture:
    """How unsure the model was before each token of a text, in bits.

    named: how many of the least and the most sure ones the words name.
    """
    axes = panel(8.6, 3.1, "How unsure the model is, token by token", x="token", y="entropy (bits)")
    axes.bar(range(len(bits)), bits, **fill("decode"))
    axes.set_xticks(range(len(tokens)), [drawable(shortened(token, 10)) for token in tokens], rotation=75, ha="right",
                    rotation_mode="anchor", family="DejaVu Sans Mono", size=7)
    axes.set_xlim(-0.7, len(bits) - 0.3)
    axes.grid(axis="x", visible=False)
    order = sorted(range(len(bits)), key=bits.__getitem__)
    said = ["; ".join(f"{tokens[i]} {bits[i]:.1f}" for i in some) for some in (order[::-1][:named], order[:named])]
    return finish(axes, f"Bars over {len(tokens)} tokens, high before a choice and low before what must come. Most unsure "
                        f"before: {said[0]} bits. Surest before: {said[1]} bits.")


@styled
def two_bars(distributions: Mapping[str, Float[Tensor, "V"]], top_p: float, min_p: float) -> Picture:
    """Sorted probabilities of several distributions, and where top-p and min-p cut each.

    distributions: title → probabilities of all V tokens.
    """
    figure = Figure(figsize=(8.4, 3.2), layout="constrained")
    panels, words = figure.subplots(1, len(distributions), sharey=True, squeeze=False)[0], []
    for axes, (title, probabilities) in zip(panels, distributions.items()):
        falling = probabilities.double().sort(descending=True).values
        by_top_p = int((falling.cumsum(-1) - falling < top_p).sum())
        by_min_p = int((falling >= min_p * falling[0]).sum())
        axes.loglog(range(1, len(falling) + 1), falling.clamp_min(1e-12).tolist(), color=COLOURS["reference"])
        axes.axvline(by_top_p, color=COLOURS["prefill"], linestyle="--", label=f"top-p {top_p:g}: {by_top_p:,} left")
        axes.axvline(by_min_p, color=COLOURS["chosen"], label=f"min-p {min_p:g}: {by_min_p:,} left")
        axes.set(title=title, xlabel="rank of the token (logarithmic)", ylim=(1e-7, 1.5))
        axes.legend(loc="upper right", frameon=True, facecolor="white", edgecolor="none", framealpha=1)
        words.append(f"{title}: the likeliest has {falling[0]:.1%}, top-p {top_p:g} leaves {by_top_p:,} tokens, "
                     f"min-p {min_p:g} leaves {by_min_p:,}")
    panels[0].set_ylabel("probability (logarithmic)")
    return Picture(figure, f"Falling curves of probability against rank, with two cuts in each. {'; '.join(words)}.")
