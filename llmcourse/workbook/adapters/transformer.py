"""Lab 04: the learner's norm and feed-forward network."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from llmcourse.ops import Parts

from .stage import Stage, Use


def learner_norm(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """`rms_norm` has the part's own signature."""
    return replace(parts, rms_norm=use("04.rms_norm", answers["rms_norm"]))


def learner_feed_forward(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """The learner's `swiglu` multiplies by itself, with plain weights: the table's `linear` is not asked."""
    swiglu = use("04.swiglu", answers["swiglu"])
    return replace(parts, swiglu=lambda x, gate, up, down, linear: swiglu(x, _plain(gate), _plain(up), _plain(down)))


def _plain(weight) -> Tensor:
    """The ordinary tensor [o, i] behind what the table's `pack` made of a weight."""
    return weight if isinstance(weight, Tensor) else weight.plain()


STAGES = (
    Stage("norm", ("04.rms_norm",), learner_norm, replaces=("rms_norm",)),
    Stage("feed-forward", ("04.swiglu",), learner_feed_forward, replaces=("swiglu",)),
)
