"""Lab 04: the learner's norm, feed-forward network and block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from llmcourse.cache import KVCache
from llmcourse.ops import Parts

from .stage import Stage, Use

LINEAR = ("q", "k", "v", "o", "gate", "up", "down")
NOTE = "whole layers, their stages inside it; with a cache it keeps the layers' inputs and computes all tokens again"


def learner_norm(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """`rms_norm` has the part's own signature."""
    return replace(parts, rms_norm=use("04.rms_norm", answers["rms_norm"]))


def learner_feed_forward(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """The learner's `swiglu` multiplies by itself, with plain weights: the table's `linear` is not asked."""
    swiglu = use("04.swiglu", answers["swiglu"])
    return replace(parts, swiglu=lambda x, gate, up, down, linear: swiglu(x, _plain(gate), _plain(up), _plain(down)))


def learner_block(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """The learner's `block` computes whole layers, one request at a time, over all tokens of a text.

    Without a cache it stands in the place of `layer`. Where a contiguous cache was asked for, `LayerInputs` takes that
    cache's place: it keeps what each layer was given, and the block computes all tokens again. Layers that the block knows
    nothing of (biases, norms of queries and keys, windows), other caches and those of the learner's keep the table's
    `layer`, composed of the stages.
    """
    before, composed = parts.cache, parts.layer
    block = answers["block"]

    def own(x: Tensor, weights, cos: Tensor, sin: Tensor, config) -> Tensor:
        y = block(x, weights, cos, sin, config)
        if y.shape != x.shape:
            raise ValueError(f"block returned {list(y.shape)}, want {list(x.shape)}")
        return y

    counted = use("04.block", own)

    def layer(x, weights, number, angles, batch, cache, parts, config):
        inputs = cache if isinstance(cache, LayerInputs) else None
        if cache.keeps_past and inputs is None or not _plain_layers(config):
            return composed(x, weights, number, angles, batch, cache, parts, config)
        weights = replace(weights, **{name: _plain(getattr(weights, name)) for name in LINEAR})
        out = torch.empty_like(x)
        for r, chunk in enumerate(batch.chunks):
            rows = batch.rows(r)
            new = x[rows], *(angle[rows] for angle in angles)
            given, cos, sin = new if inputs is None else inputs.with_past(number, chunk, new)
            out[rows] = counted(given, weights, cos, sin, config)[-len(chunk.ids) :]
        return out

    def cache(asked):
        cache = before(asked)
        return LayerInputs(cache) if cache.kind == "contiguous" and _plain_layers(cache.config) else cache

    return replace(parts, layer=layer, cache=cache)


class LayerInputs(KVCache):
    """In place of keys and values: what each layer was given, and the angles, of all tokens of each request."""

    kind = "layer inputs"

    def __init__(self, cache):
        self.spec, self.step_tokens, self.bytes_for = cache.spec, cache.step_tokens, cache.bytes_for
        self.slots: dict[int, dict[int, tuple[Tensor, ...]]] = {}

    def open(self, ids: Sequence[int], capacity: int) -> tuple[int, int]:
        """A new request's slot, and 0."""
        slot = next(number for number in range(len(self.slots) + 1) if number not in self.slots)
        self.slots[slot] = {}
        return slot, 0

    def close(self, slot: int) -> None:
        """Forget a request."""
        del self.slots[slot]

    def with_past(self, layer: int, chunk, new: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """What this layer was given of all tokens of a request, [T, d], and their angles, the new ones kept with the past."""
        kept = self.slots[chunk.slot]
        kept[layer] = tuple(map(torch.cat, zip(kept[layer], new))) if chunk.n_past else new
        return kept[layer]


def _plain_layers(config) -> bool:
    """Whether layers are as lab 04 knows them."""
    return not (config.qkv_bias or config.o_bias or config.qk_norm or config.windows)


def _plain(weight) -> Tensor:
    """The ordinary tensor [o, i] behind what the table's `reorder` made of a weight."""
    return weight if isinstance(weight, Tensor) else weight.plain()


STAGES = (
    Stage("norm", ("04.rms_norm",), learner_norm, replaces=("rms_norm",)),
    Stage("feed-forward", ("04.swiglu",), learner_feed_forward, replaces=("swiglu",)),
    Stage("block", ("04.block",), learner_block, note=NOTE),
)
