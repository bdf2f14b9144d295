"""Figures of lesson 03: who looks at whom, in one head and in all of them, and what the scale and the blocks do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from torch import Tensor

from .style import COLOURS, Picture, drawable, finish, panel, shortened, styled
from .tints import INK, TINTS

SHADES = "Blues"                # white: not looked at; dark: all the weight
WRITTEN_UP_TO = 6               # a map with at most so many tokens has its numbers in it
LINES = (("reference", "o", ":"), ("chosen", "s", "-"), ("reference", "^", "--"))  # role, marker, line of each series


@styled
def attention_map(weights: Tensor, tokens: Sequence[str], title: str = "Who looks at whom") -> Picture:
    """One head's weights [n, n]: a row for each token that looks, a column for each that is looked at."""
    rows = weights.tolist()
    n, side = len(rows), max(3.2, 0.27 * len(rows) + 1.4)
    axes = panel(side + 0.9, side, title, x="is looked at (key)", y="looks (query)")
    image = axes.imshow(rows, cmap=SHADES, vmin=0, vmax=1, interpolation="nearest")
    labels = [drawable(shortened(token, 12)) for token in tokens]
    size = 8 if n > WRITTEN_UP_TO else 10
    axes.set_xticks(range(n), labels, rotation=90, family="DejaVu Sans Mono", size=size)
    axes.set_yticks(range(n), labels, family="DejaVu Sans Mono", size=size)
    axes.grid(False)
    if n <= WRITTEN_UP_TO:
        for i, row in enumerate(rows):
            for j, weight in enumerate(row):
                axes.text(j, i, f"{weight:.2f}", ha="center", va="center", color="white" if weight > 0.6 else INK)
    axes.figure.colorbar(image, ax=axes, label="weight", shrink=0.8)
    most = [max(range(n), key=row.__getitem__) for row in rows]
    words = "; ".join(f"{tokens[i]} at {tokens[j]} {rows[i][j]:.2f}" for i, j in enumerate(most))
    return finish(axes, f"A square of shades, {n} tokens on each side. Each token looks most at: {words}.")


@styled
def all_heads(weights: Tensor) -> Picture:
    """The maps of all heads [L, Hq, n, n] as tiles: layers from left to right, heads from top to bottom."""
    import torch

    n_layers, n_heads, n, _ = weights.shape
    tiles = torch.full((n_heads, n + 1, n_layers, n + 1), torch.nan)
    tiles[:, :n, :, :n] = weights.permute(1, 2, 0, 3).float()
    step = n + 1
    title = f"All {n_layers * n_heads} heads at one sentence"
    axes = panel(0.42 * n_layers + 0.8, 0.42 * n_heads + 0.9, title, x="layer", y="head")
    image = tiles.reshape(n_heads * step, n_layers * step).numpy()
    axes.imshow(image, cmap=SHADES, vmin=0, vmax=1, interpolation="nearest", aspect="equal")
    axes.set_facecolor("#E3E3E3")
    axes.set_xticks([step * layer + n / 2 for layer in range(n_layers)], range(n_layers), size=8)
    axes.set_yticks([step * head + n / 2 for head in range(n_heads)], range(n_heads), size=8)
    axes.tick_params(length=0)
    axes.grid(False)
    first = weights[..., 1:, 0].mean((1, 2)).tolist()
    low, high = min(range(n_layers), key=first.__getitem__), max(range(n_layers), key=first.__getitem__)
    return finish(axes, f"A wall of {n_layers} × {n_heads} small maps, each a triangle. A dark left edge means that the "
                        f"first token is looked at: it gets {first[low]:.0%} of the weight in layer {low}, "
                        f"{first[high]:.0%} in layer {high}.")


@styled
def head_scores(scores: Mapping[str, Tensor]) -> Picture:
    """One grid for each question, layer × head [L, Hq], from 0 to 1; the head with the largest score is framed."""
    from matplotlib.patches import Rectangle

    n_layers, n_heads = next(iter(scores.values())).shape
    figure = Figure(figsize=(0.25 * n_layers + 1.4, (0.25 * n_heads + 0.7) * len(scores)), layout="constrained")
    words = []
    for axes, (title, grid) in zip(figure.subplots(len(scores), squeeze=False)[:, 0], scores.items()):
        image = axes.imshow(grid.T.tolist(), cmap=SHADES, vmin=0, vmax=1, interpolation="nearest", aspect="auto")
        layer, head = divmod(int(grid.argmax()), n_heads)
        axes.add_patch(Rectangle((layer - 0.5, head - 0.5), 1, 1, fill=False, edgecolor=COLOURS["chosen"], linewidth=2.5))
        axes.set(title=title, xlabel="layer", ylabel="head", yticks=range(n_heads))
        axes.set_xticks(range(0, n_layers, 2))
        axes.grid(False)
        words.append(f"{title}: most in layer {layer}, head {head}, {grid[layer, head]:.2f}; mean {grid.mean():.2f}")
    figure.colorbar(image, ax=figure.axes, label="mean weight", shrink=0.6)
    return Picture(figure, f"Grids of shades, a column for each layer, a row for each head. {'. '.join(words)}.")


@styled
def sorted_weights(weights: Mapping[str, Sequence[float]], shown: int = 12) -> Picture:
    """One row of attention weights, largest first, for each way to scale. weights: label → weights that add up to 1."""
    figure = Figure(figsize=(9.0, 2.8), layout="constrained")
    panels = figure.subplots(1, len(weights), sharey=True, squeeze=False)[0]
    said = []
    for axes, (label, each) in zip(panels, weights.items()):
        percent = [100 * weight for weight in sorted(each, reverse=True)[:shown]]
        axes.bar(range(1, len(percent) + 1), percent, color=COLOURS["chosen"])
        axes.axhline(100 / len(each), color=COLOURS["reference"], linestyle=":", linewidth=1.2)
        axes.set(title=label, xlabel=f"key, by rank (of {len(each)})", ylim=(0, 100))
        axes.set_xticks(range(1, len(percent) + 1, 2))
        axes.grid(axis="x", visible=False)
        said.append(f"{label}: the largest {percent[0]:.0f} %, the next {percent[1]:.0f} %")
    panels[0].set_ylabel("weight (%)")
    return Picture(figure, f"Bars that fall from left to right, the {shown} largest of {len(each)} weights in each panel, and a "
                           f"dotted line at {100 / len(each):.0f} %, where all are alike. {'; '.join(said)}.")


@styled
def entropies(by_scale: Mapping[str, Sequence[float]], most: float) -> Picture:
    """How spread the attention of each layer is, for each way to scale. by_scale: label → entropy [L]; most: if even."""
    n_layers = len(next(iter(by_scale.values())))
    axes = panel(6.6, 3.3, "How many tokens a head looks at, by the scale", x="layer", y="entropy of the weights (bits)")
    for (label, each), (role, marker, line) in zip(by_scale.items(), LINES):
        axes.plot(range(n_layers), each, color=COLOURS[role], marker=marker, markersize=3.5, linestyle=line, label=label)
    axes.axhline(most, color=COLOURS["other"], linewidth=2)
    axes.text(n_layers - 1, most, "all tokens alike", ha="right", va="bottom", size=9)
    axes.set_ylim(0, 1.3 * most)
    axes.legend(loc="upper right", ncols=3)
    words = ", ".join(f"{label} {sum(each) / n_layers:.2f}" for label, each in by_scale.items())
    return finish(axes, f"Lines over {n_layers} layers, under a level of {most:.1f} bits, where all tokens get the same "
                        f"weight. Mean entropy in bits: {words}.")


@styled
def repeated_loss(losses: Sequence[float], half: int, blind: float) -> Picture:
    """How surprised the model is at each token of a text that comes twice. losses: nats, of tokens 1 … 2·half − 1.

    blind: the surprise of one who guesses among all tokens alike.
    """
    axes = panel(7.2, 3.2, "The same random tokens, twice", x="position (tokens)", y="surprise (nats)")
    for start, stop, role, label in ((1, half + 1, "other", "first time"), (half + 1, 2 * half, "chosen", "second time")):
        axes.bar(range(start, stop), losses[start - 1 : stop - 1], label=label, width=0.9, color=COLOURS[role])
    axes.axhline(blind, color=COLOURS["reference"], linestyle=":", label=f"guessing blindly: {blind:.1f}")
    axes.set_ylim(0, 1.35 * max(losses))
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper right", ncols=3)
    first, second = losses[:half], losses[half:]
    return finish(axes, f"Bars over {2 * half - 1} positions, tall in the first half and low in the second: "
                        f"{sum(first) / len(first):.1f} nats on average, then {sum(second) / len(second):.1f}.")


@styled
def shared_heads(n_heads: int, kinds: Mapping[str, int]) -> Picture:
    """Which key/value head each query head reads. kinds: label → how many key/value heads there are."""
    figure = Figure(figsize=(0.75 * n_heads + 1.2, 1.5 * len(kinds)), layout="constrained")
    for axes, (label, n_kv) in zip(figure.subplots(len(kinds), squeeze=False)[:, 0], kinds.items()):
        group = n_heads // n_kv
        for head in range(n_heads):
            owner = head // group
            middle = owner * group + (group - 1) / 2
            axes.plot([head, middle], [0.82, 0.18], color="#777777", linewidth=1, zorder=1)
            _disc(axes, head, 1.0, f"Q{head}", TINTS[owner % len(TINTS)])
            _disc(axes, middle, 0.0, f"KV{owner}", TINTS[owner % len(TINTS)])
        axes.set(xlim=(-0.7, n_heads - 0.3), ylim=(-0.4, 1.4), title=label)
        axes.axis("off")
    words = "; ".join(f"{label}: {n_heads // n_kv} query heads read each of {n_kv}" for label, n_kv in kinds.items())
    return Picture(figure, f"Query heads above, key/value heads below, lines between them. {words}. "
                           "Heads that share are neighbours.")


def _disc(axes, x: float, y: float, text: str, tint: str) -> None:
    axes.text(x, y, text, ha="center", va="center", size=9, color=INK, zorder=2,
              bbox={"boxstyle": "round,pad=0.35", "facecolor": tint, "edgecolor": "#777777"})


@styled
def score_memory(lengths: Sequence[int], whole: Sequence[float], block: Sequence[float], block_size: int) -> Picture:
    """Bytes of one layer's scores against the length of the text: the whole matrix, and one block of it at a time."""
    axes = panel(6.4, 3.4, "What one layer's scores need",
                 x="tokens in the text (logarithmic)", y="memory (MB, logarithmic)")
    for (label, each), (role, marker, line) in zip(
        {"the whole matrix": whole, f"a block of {block_size} keys at a time": block}.items(), (LINES[2], LINES[1])
    ):
        axes.loglog(lengths, [one / 1e6 for one in each], color=COLOURS[role], marker=marker, linestyle=line, label=label)
    axes.set_xticks(lengths, [f"{length:,}" for length in lengths])
    axes.minorticks_off()
    axes.legend(loc="upper left")
    return finish(axes, f"Two rising lines, the whole matrix twice as steep. At {lengths[-1]:,} tokens the whole matrix "
                        f"needs {whole[-1] / 1e6:,.0f} MB, a block of {block_size} keys {block[-1] / 1e6:,.1f} MB.")
