"""One Llama-family decoder: embedding, layers, head. How each is computed, the table of parts says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.batch import Batch, Chunk
from llmcourse.cache import NoCache, make_cache
from llmcourse.errors import PromptTooLong
from llmcourse.ops import Limits, Parts, as_it_is, default_parts


class Llama:
    """A model: its config, its weights, and the way through them.

    Args:
        config: a `ModelConfig`.
        weights: a `Weights`, all on one device and in one dtype.
        source: the name it was loaded by (its tokenizer is found under the same); None for a model made by hand.

    `model(ids)` gives the logits of every position, without an engine; `forward` is one step of an engine.
    """

    def __init__(self, config, weights, source: str | None = None):
        self.config, self.weights, self.source = config, weights, source
        self.device, self.dtype = weights.embed.device, weights.embed.dtype
        self._reordered: WeakValueDictionary[Callable, Llama] = WeakValueDictionary()

    @property
    def name(self) -> str:
        """The model's name, as its config gives it."""
        return self.config.name

    @property
    def parts(self) -> Parts:
        """The fastest tested table for the model's device."""
        return default_parts(self.device.type)

    def reordered(self, reorder: Callable) -> Llama:
        """The same model with every linear weight replaced by `reorder(weight)`.

        The copy is shared by all who use it at the same time (engines on this model), and ends with the last of them. The
        plain weights stay, for those who look at them: reordering costs the memory of a second set (where plain ones are
        mapped from a file, only of the reordered ones).
        """
        if reorder is as_it_is:
            return self
        copy = self._reordered.get(reorder)
        if copy is None:
            names = ("q", "k", "v", "o", "gate", "up", "down")
            layers = [replace(layer, **{name: reorder(getattr(layer, name)) for name in names}) for layer in self.weights.layers]
            weights = replace(self.weights, layers=layers, head=reorder(self.weights.head))
            copy = self._reordered[reorder] = Llama(self.config, weights, self.source)
        return copy

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"<{self.name}: {self.config.n_params / 1e6:.1f} M parameters, {dtype}, {self.device}>"

    @torch.inference_mode()
    def __call__(self, ids: Sequence[int] | Tensor, parts: Parts | None = None) -> Float[Tensor, "n V"]:
        """Logits after each of the n tokens: row i scores what may follow token i.

        Raises ValueError for an empty list or an id outside the vocabulary, PromptTooLong beyond the context.
        """
        ids = ids.tolist() if isinstance(ids, Tensor) else list(ids)
        check_ids(ids, self.config)
        batch = Batch.of([Chunk(ids, n_sample=len(ids))], device=self.device)
        return self.forward(batch, NoCache(self.config), parts or default_parts(self.device.type))

    @torch.inference_mode()
    def forward(self, batch: Batch, cache, parts: Parts) -> Float[Tensor, "m V"]:
        """One step: every token of the batch through every layer.

        Returns:
            logits in float32 (float64 for a float64 model) of `batch.sample_rows`, m of them; none when none are wanted.
        """
        config, weights = self.config, self.weights
        x = parts.embed(batch.ids, weights.embed)
        angles = parts.rope_angles(batch.positions, config.head_dim, config.rope_theta, config.rope_scaling)
        for number, layer in enumerate(weights.layers):
            x = parts.layer(x, layer, number, angles, batch, cache, parts, config)
        if batch.n_sample_rows < batch.n_tokens:
            x = x[batch.sample_rows]
        logits = parts.linear(parts.rms_norm(x, weights.norm, config.rms_eps), weights.head)
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def new_cache(self, spec: str, parts: Parts):
        """An empty cache for this model, as `make_cache` names it: the table's own where it has one of that spec."""
        wanted = spec, self.config, self.dtype, self.device
        cache = None if parts.make_cache is None else parts.make_cache(*wanted)
        return make_cache(*wanted) if cache is None else cache

    def prepared(self, parts: Parts, cache, limits: Limits) -> Callable[[Batch], Float[Tensor, "m V"]]:
        """The step of a table on this model and cache: one call computes a whole batch.

        The table's own (`prepare`) where it has one that takes this kind of cache; else layer by layer, with its reordered
        weights. A prepared step owns what it needs: they live as long as it does.
        """
        if parts.prepare is not None and cache.kind in parts.takes:
            step = parts.prepare(self, cache, limits)
            if step is not None:
                return step
        model = self.reordered(parts.reorder)
        return lambda batch: model.forward(batch, cache, parts)


def check_ids(ids: Sequence[int], config, room: int = 0) -> None:
    """Raise unless ids are token ids of this vocabulary, at least one, and leave `room` tokens of the context free.

    Raises ValueError for an empty list or an id outside the vocabulary, PromptTooLong for too many.
    """
    if not ids:
        raise ValueError("no tokens: a model needs at least one id to predict what follows")
    if len(ids) + room > config.context:
        rest = f" and leave no room for {room} more" if room else ""
        raise PromptTooLong(
            f"{len(ids):,} tokens do not fit into the context of {config.name}, {config.context:,} tokens{rest}. "
            "Shorten the prompt, or take a model with a longer context."
        )
    wrong = next((i for i in ids if not 0 <= i < config.vocab_size), None)
    if wrong is not None:
        raise ValueError(f"token id {wrong} is outside the vocabulary of {config.name}: 0 to {config.vocab_size - 1}")
