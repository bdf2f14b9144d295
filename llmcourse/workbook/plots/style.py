"""One style for all figures: what each colour means, sizes, and the `Picture` that every plotting function returns.

The colours are from Okabe and Ito's set, which colour-blind readers can tell apart (Okabe and Ito 2008, "Color
Universal Design"). Where two of them stand side by side they also differ in lightness or hatching, so that a figure
survives a grey printer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..exploring import Place, picture

COLOURS = {
    "prefill": "#D55E00",    # the first token: its wait, the work on the prompt
    "decode": "#56B4E9",     # every later token
    "chosen": "#009E73",     # the token, pair or bar that the text speaks of
    "other": "#CFCFCF",      # what it is compared with
    "reference": "#222222",  # lines to measure against
    "attention": "#0072B2",  # a part of the model: attention and its matrices
    "looking back": "#9DC3E6",  # attention's work on the tokens before
    "feed-forward": "#E69F00",  # a part of the model
    "table": "#CC79A7",      # a part of the model: the embedding table and the output head
}
HATCHES = {"prefill": "///", "looking back": "...", "feed-forward": "\\\\\\", "table": "xxx"}

_RC = {
    "font.family": "DejaVu Sans", "font.size": 10, "axes.titlesize": 11, "axes.labelsize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "axes.edgecolor": "#666666",
    "axes.grid": True, "grid.color": "#E3E3E3", "grid.linewidth": 0.8, "hatch.linewidth": 0.8, "legend.frameon": False,
    "figure.facecolor": "white", "savefig.facecolor": "white", "figure.dpi": 110,
}  # fmt: skip


class Picture(NamedTuple):
    """A figure, and in words what it shows: the text alternative."""

    figure: Figure
    text: str

    def _ipython_display_(self) -> None:
        self.put(Place())

    def put(self, place: Place) -> None:
        """Show the figure, and folded below it the words, in a place of a notebook's output."""
        place.put(*picture(lambda: self, {}))


def styled(draw: Callable[..., Picture]) -> Callable[..., Picture]:
    """Decorate a plotting function: it draws in the course's style, whatever matplotlib was told elsewhere."""

    @wraps(draw)
    def in_style(*args, **kwargs) -> Picture:
        with matplotlib.rc_context(_RC):
            return draw(*args, **kwargs)

    return in_style


def panel(width: float, height: float, title: str = "", x: str = "", y: str = "") -> Axes:
    """One empty pair of axes, `width` × `height` inches. x, y: labels, units in brackets."""
    axes = Figure(figsize=(width, height), layout="constrained").subplots()
    axes.set(title=title, xlabel=x, ylabel=y)
    return axes


def fill(role: str) -> dict[str, str]:
    """How bars of a role are filled, as keyword arguments of matplotlib: colour, hatching, and a white edge."""
    return {"color": COLOURS[role], "hatch": HATCHES.get(role, ""), "edgecolor": "white"}


def finish(axes: Axes, text: str) -> Picture:
    """The figure of these axes with its text alternative."""
    return Picture(axes.figure, text)


def drawable(text: str) -> str:
    """`text` with the characters that the figures' font lacks replaced by ▯, so that none is lost without a trace."""
    known = _characters()
    return "".join(c if ord(c) in known else "▯" for c in text)


def shortened(text: str, most: int) -> str:
    """`text`, with an ellipsis in place of its end where it has more than `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


@lru_cache(maxsize=1)
def _characters() -> frozenset[int]:
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(findfont(_RC["font.family"])).get_charmap())
