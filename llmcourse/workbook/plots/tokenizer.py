"""Figures of lesson 01: merges replayed, what a vocabulary saves, and what a sentence costs in each language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..merging import replay
from .style import COLOURS, Picture, drawable, fill, finish, panel, styled
from .tints import INK, TINTS

GAP = 1.6  # between words, in letters


@styled
def merges(words: Mapping[str, int], n: int) -> Picture:
    """Every word after 0, 1, … n merges, one row each; the token that a merge made is outlined.

    words: word → how often it occurs.
    """
    steps = replay(words, n)
    axes = panel(0.36 * sum(len(word) + 2 for word in words) + 2.2, 0.46 * len(steps) + 0.5)
    tints: dict[bytes, str] = {}
    for row, step in enumerate(steps):
        new = b"".join(step.merged) if step.merged else None
        x = 0.0
        for word in step.words:
            for token in word:
                tint = "white" if len(token) == 1 else tints.setdefault(token, TINTS[len(tints) % len(TINTS)])
                _box(axes, x, row, token, tint, outlined=token == new)
                x += len(token)
            x += GAP
    axes.set_yticks(range(len(steps)), [_row_label(step) for step in steps], family="DejaVu Sans Mono", size=9)
    axes.set(xlim=(-0.3, x - 1.2), ylim=(len(steps) - 0.5, -1.0), xticks=[])
    start = 0.0
    for word, times in words.items():
        axes.text(start + len(word.encode()) / 2, -0.72, f"{times}×", ha="center", size=9, color=INK)
        start += len(word.encode()) + GAP
    axes.grid(False)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    story = "; ".join(f"{_row_label(step).strip()}: {_spelled(step.words)}" for step in steps)
    return finish(axes, f"The words, cut into tokens, after each merge. {story}.")


def _box(axes, x: float, row: int, token: bytes, tint: str, outlined: bool) -> None:
    from matplotlib.patches import Rectangle

    edge = {"linewidth": 2.0, "edgecolor": INK, "zorder": 3} if outlined else {"linewidth": 0.6, "edgecolor": "#999999"}
    axes.add_patch(Rectangle((x + 0.05, row - 0.36), len(token) - 0.1, 0.72, facecolor=tint, **edge))
    axes.text(x + len(token) / 2, row, drawable(token.decode("utf-8", "replace")), ha="center", va="center",
              family="DejaVu Sans Mono", size=10, color=INK, zorder=4)


def _row_label(step) -> str:
    if step.merged is None:
        return "bytes"
    left, right = (part.decode("utf-8", "replace") for part in step.merged)
    return f"{left} + {right}  ({step.count}×)"


def _spelled(words) -> str:
    return " ".join("|".join(token.decode("utf-8", "replace") for token in word) for word in words)


@styled
def bytes_per_token(sizes: Sequence[int], learned: Sequence[float], names: Mapping[str, tuple[int, float]]) -> Picture:
    """Bytes per token against the size of the vocabulary. names: real vocabularies, name → (size, bytes per token)."""
    axes = panel(6.2, 3.4, "A larger vocabulary makes a text shorter, ever more slowly",
                 x="tokens in the vocabulary (logarithmic)", y="bytes per token")
    axes.semilogx(sizes, learned, base=2, color=COLOURS["chosen"], marker="o", label="learned here")
    for marker, (name, (size, value)) in zip("s^D", names.items()):
        axes.plot(size, value, marker, color=COLOURS["reference"], markersize=8, label=name, linestyle="none")
    ticks = [256, 1024, 4096, 16384, 65536]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(0, None)
    axes.legend(loc="lower right")
    real = "; ".join(f"{name}, {size:,} tokens: {value:.2f}" for name, (size, value) in names.items())
    return finish(axes, f"A rising curve that flattens: {learned[0]:.2f} bytes per token at {sizes[0]:,} tokens, "
                        f"{learned[-1]:.2f} at {sizes[-1]:,}. {real}.")


@styled
def token_lengths(lengths: Sequence[int], longest_shown: int = 20) -> Picture:
    """How many tokens of a vocabulary have 1, 2, 3 … bytes. lengths: of every token."""
    counts = [sum(length == n for length in lengths) for n in range(1, longest_shown)]
    counts.append(sum(length >= longest_shown for length in lengths))
    axes = panel(6.2, 2.9, "How long the tokens are", x="bytes in the token", y="tokens")
    axes.bar(range(1, longest_shown + 1), counts, **fill("chosen"))
    ticks = [1, *range(5, longest_shown, 5), longest_shown]
    axes.set_xticks(ticks, [*map(str, ticks[:-1]), f"{longest_shown} +"])
    axes.grid(axis="x", visible=False)
    common = max(range(1, longest_shown), key=lambda n: counts[n - 1])
    return finish(axes, f"Bars by length. {counts[0]} tokens are a single byte; the commonest length is {common} bytes "
                        f"({counts[common - 1]:,} tokens); {counts[-1]:,} have {longest_shown} or more.")


@styled
def languages(counts: Mapping[str, int], scripts: Mapping[str, str], home: str = "English") -> Picture:
    """Tokens for one sentence in each language, fewest on top, and how many times those of `home` that is.

    counts: language → tokens; scripts: language → script.
    """
    order = sorted(counts, key=lambda language: counts[language])
    axes = panel(7.2, 0.235 * len(order) + 1.1, "The same sentence in every language", x="tokens")
    latin = [scripts[language] == "Latin" for language in order]
    for is_latin, role, label in ((True, "other", "Latin letters"), (False, "chosen", "other scripts")):
        rows = [i for i, mine in enumerate(latin) if mine == is_latin]
        bars = axes.barh(rows, [counts[order[i]] for i in rows], label=label, **fill(role))
        axes.bar_label(bars, [f" {counts[order[i]]}   {counts[order[i]] / counts[home]:.1f}×" for i in rows], size=8)
    axes.axvline(counts[home], color=COLOURS["reference"], linestyle=":", linewidth=1.2)
    axes.set_yticks(range(len(order)), order, size=9)
    axes.set(ylim=(len(order) - 0.4, -0.6), xlim=(0, 1.14 * max(counts.values())))
    axes.grid(axis="y", visible=False)
    axes.legend(loc="center right")
    words = ", ".join(f"{language} {counts[language]}" for language in order)
    return finish(axes, f"Bars, shortest first, in tokens: {words}. A dotted line marks {home}.")


@styled
def reading_time(counts: Mapping[str, int], seconds: Mapping[str, float], named: Sequence[str]) -> Picture:
    """The time that the model needs to read one sentence, against its tokens. named: languages that get a label."""
    axes = panel(6.2, 3.4, "More tokens, more time", x="tokens in the sentence", y="time to read it (ms)")
    ms = {language: 1000 * value for language, value in seconds.items()}
    axes.scatter([counts[language] for language in ms], ms.values(), color=COLOURS["prefill"], s=28, zorder=3)
    for language in named:
        axes.annotate(language, (counts[language], ms[language]), xytext=(0, 7), textcoords="offset points",
                      ha="center", size=9)
    axes.set(xlim=(0, 1.15 * max(counts.values())), ylim=(0, 1.15 * max(ms.values())))
    words = ", ".join(f"{language} {counts[language]} tokens {ms[language]:.0f} ms" for language in named)
    return finish(axes, f"Points that rise from left to right: {words}.")
