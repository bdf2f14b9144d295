"""Figures of lesson 04: the residual stream, the gate's curve, the logit lens, a layer left out, the map of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from .style import COLOURS, Picture, drawable, fill, finish, panel, shortened, styled
from .tints import INK

MARKERS, DASHES = "osD^v", ("-", "--", ":", "-.")
LEAST_LABELLED = 0.055  # share of a bar that leaves room for a number


@styled
def stream_writes(tokens: Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float]]]) -> Picture:
    """How long the residual stream is before each layer, and what each layer adds to it, for several tokens.

    tokens: token → (lengths of what attention writes [L], of what the feed-forward networks write [L], of the token's row
    of the stream [L + 1], the last after all layers).
    """
    figure = Figure(figsize=(4.6 * len(tokens), 3.7), layout="constrained")
    panels, said = figure.subplots(1, len(tokens), sharey=True, squeeze=False)[0], []
    for axes, (token, (attention, feed_forward, stream)) in zip(panels, tokens.items()):
        layers = range(len(attention))
        axes.semilogy(range(len(stream)), stream, color=COLOURS["reference"], linewidth=1.6, label="the stream itself")
        axes.semilogy(layers, attention, "o", markersize=5, color=COLOURS["attention"], label="written by attention")
        axes.semilogy(layers, feed_forward, "^", color=COLOURS["feed-forward"], markeredgecolor=INK, markeredgewidth=0.4,
                      label="written by feed-forward")
        axes.set(title=f"at the token {drawable(token)}", xlabel="layer")
        loudest = max(layers, key=lambda layer: max(attention[layer], feed_forward[layer]))
        who = "attention" if attention[loudest] > feed_forward[loudest] else "feed-forward"
        said.append(f"The stream of {token} begins at {stream[0]:,.1f} and ends at {stream[-1]:,.1f}; at most it is "
                    f"{max(stream):,.0f} long. The largest write is {max(*attention, *feed_forward):,.0f}, by {who} in layer "
                    f"{loudest}")
    panels[0].set_ylabel("length (logarithmic)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return Picture(figure, f"A line and two rows of points over {len(attention)} layers in each panel. {'. '.join(said)}.")


@styled
def activations(x: Sequence[float], curves: Mapping[str, Sequence[float]]) -> Picture:
    """Functions of one number; the first one is the one that the text speaks of. curves: name → values [len(x)]."""
    axes = panel(5.6, 3.2, "What the gate lets through", x="a", y="f(a)")
    roles = ["chosen"] + ["reference"] * (len(curves) - 1)
    for (name, values), role, dash in zip(curves.items(), roles, DASHES):
        axes.plot(x, values, dash, color=COLOURS[role], linewidth=2.4 if role == "chosen" else 1.3, label=name)
    axes.legend(loc="upper left")
    name, values = next(iter(curves.items()))
    low = min(range(len(x)), key=lambda i: values[i])
    return finish(axes, f"Curves of {', '.join(curves)}. {name} falls to {values[low]:.2f} at {x[low]:.2f}, is 0 at 0 and "
                        f"{values[-1]:.2f} at {x[-1]:.0f}.")


@styled
def logit_lens(
    tokens: Sequence[str], layers: Sequence[int], best: Sequence[Sequence[str]], probabilities: Sequence[Sequence[float]]
) -> Picture:
    """What the head would say after each layer: the likeliest next token, darker where likelier; the last layer on top.

    tokens: [n], the text; layers: after how many layers each row was read; best, probabilities: [rows, n].
    """
    from matplotlib.colors import LinearSegmentedColormap

    title = "What comes next? Read after each layer"
    axes = panel(0.9 * len(tokens) + 1.9, 0.3 * len(layers) + 1.4, title, x="token that was read", y="layers passed")
    shades = LinearSegmentedColormap.from_list("likelier", ["white", COLOURS["chosen"]])
    image = axes.imshow(probabilities, aspect="auto", cmap=shades, vmin=0, vmax=1, origin="lower", interpolation="nearest")
    for row, words in enumerate(best):
        for column, word in enumerate(words):
            axes.text(column, row, drawable(shortened(word, 9)), ha="center", va="center", size=7.5, color=INK,
                      family="DejaVu Sans Mono")
    axes.set_xticks(range(len(tokens)), [drawable(shortened(token, 10)) for token in tokens], rotation=30, ha="right",
                    rotation_mode="anchor", family="DejaVu Sans Mono", size=8.5)
    axes.set_yticks(range(len(layers)), layers)
    axes.grid(False)
    axes.figure.colorbar(image, ax=axes, label="probability", pad=0.02)
    story = ", ".join(f"after {layer}: {words[-1]} {p[-1]:.0%}" for layer, words, p in zip(layers, best, probabilities))
    return finish(axes, f"A table of guesses, one column a token, one row a layer. In the last column, after "
                        f"{tokens[-1]}: {story}.")


@styled
def answer_forming(curves: Mapping[str, Sequence[int]], vocabulary: int) -> Picture:
    """The rank of the final answer after each layer: 1 is the best. curves: name → ranks [L + 1]."""
    axes = panel(7.0, 3.4, "When does the answer stand?", x="layers passed", y="rank of the final answer (logarithmic)")
    for (name, ranks), marker, dash in zip(curves.items(), MARKERS, DASHES):
        axes.semilogy(range(len(ranks)), ranks, dash, marker=marker, markersize=4, markevery=2, label=drawable(name))
    for line, role in zip(axes.lines, ("chosen", "prefill", "decode", "reference")):
        line.set_color(COLOURS[role])
    axes.set_ylim(2 * vocabulary, 0.6)
    ticks = [10**power for power in range(6) if 10**power < 2 * vocabulary]
    axes.set_yticks(ticks, ["1 (first)", *(f"{tick:,}" for tick in ticks[1:])])
    axes.minorticks_off()
    axes.legend(loc="upper left")
    words = "; ".join(f"{name}: rank {ranks[0]:,} at first, {ranks[len(ranks) // 2]:,} after {len(ranks) // 2} layers, first "
                      f"from layer {_stays_first(ranks)} on" for name, ranks in curves.items())
    return finish(axes, f"Curves that climb late, from low ranks to the first. {words}.")


def _stays_first(ranks: Sequence[int]) -> int:
    """After how many layers the rank is 1 and stays so."""
    return max((i + 1 for i, rank in enumerate(ranks) if rank > 1), default=0)


@styled
def without_a_layer(losses: Sequence[float], whole: float) -> Picture:
    """The loss with one layer left out, for each layer. losses: [L], in nats per token; whole: of the whole model."""
    axes = panel(7.2, 3.0, "Each layer left out, one at a time", x="layer left out", y="loss (nats per token)")
    axes.bar(range(len(losses)), losses, **fill("other"))
    axes.axhline(whole, color=COLOURS["reference"], linestyle=":", linewidth=1.4, label=f"the whole model: {whole:.2f}")
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper right")
    worst, least = max(range(len(losses)), key=losses.__getitem__), min(range(len(losses)), key=losses.__getitem__)
    return finish(axes, f"Bars over {len(losses)} layers, and a dotted line at {whole:.2f}, the whole model. Most needed is "
                        f"layer {worst} ({losses[worst]:.2f} without it), least layer {least} ({losses[least]:.2f}).")


_ROLES = {"embedding table": "table", "output head": "table", "attention's matrices": "attention",
          "looking back": "looking back", "feed-forward": "feed-forward", "norms": "other"}  # fmt: skip


@styled
def model_map(name: str, parameters: Mapping[str, int], flops: Mapping[str, int], context: int) -> Picture:
    """Two bars, cut into the parts of a model: where its parameters are, and where the work of one token goes.

    parameters, flops: part → number (llmcourse.measure.anatomy); context: tokens before the one that is computed.
    """
    axes = panel(7.6, 2.7, f"{name}: what it holds, and what it does for one token", x="share (%)")
    rows = {f"parameters\n{_short(sum(parameters.values()))}": parameters,
            f"FLOPs after\n{context:,} tokens\n{_short(sum(flops.values()))}": flops}
    for row, counts in enumerate(rows.values()):
        _cut_bar(axes, row, counts)
    axes.set_yticks(range(len(rows)), rows)
    axes.set(xlim=(0, 100), ylim=(1.5, -0.5))
    axes.grid(False)
    labels = dict(zip(axes.get_legend_handles_labels()[1], axes.get_legend_handles_labels()[0]))
    axes.legend(labels.values(), labels, loc="upper left", ncols=3, bbox_to_anchor=(-0.02, -0.22), columnspacing=1.2)
    return finish(axes, f"Two bars cut into parts. Of {sum(parameters.values()):,} parameters: {_shares(parameters)}. Of "
                        f"{sum(flops.values()):,} operations for a token after {context:,} others: {_shares(flops)}.")


def _cut_bar(axes, row: int, counts: Mapping[str, int]) -> None:
    left = 0.0
    for part in counts:
        share = _share(counts, part)
        if share:
            axes.barh(row, 100 * share, left=left, height=0.62, label=part, **fill(_ROLES[part]))
        if share > LEAST_LABELLED:
            axes.text(left + 50 * share, row, f"{100 * share:.0f}", ha="center", va="center", color=INK,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.2})
        left += 100 * share


def _share(counts: Mapping[str, int], part: str) -> float:
    return counts[part] / sum(counts.values())


def _shares(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{part} {_share(counts, part):.1%}" for part in counts if counts[part])


def _short(number: float) -> str:
    """134.5 M, 8.03 G: three digits and a unit."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"
