"""`StepModel`: a real model as lab 07 sees it, one step at a time, with a cache of the learner's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.batch import Batch, Chunk
from llmcourse.cache import KVCache
from llmcourse.ops import default_parts


class StepModel:
    """Wraps a loaded model for `generate_cached(model, ids, max_new)`.

    Args:
        model: what `load_model` returns.
        make_cache: called as make_cache(n_layers, n_kv_heads, head_dim, capacity), gives a cache with
            `update(layer, k, v) -> (K, V)`.

    `fed` collects how many tokens each call brought.
    """

    def __init__(self, model, make_cache: Callable):
        self.parts = default_parts(model.device.type)
        self.model, self.make_cache = model.reordered(self.parts.reorder), make_cache
        self.fed: list[int] = []

    def new_cache(self, capacity: int):
        """An empty cache for one text of at most `capacity` tokens."""
        config = self.model.config
        with tensors_like(self.model.dtype, self.model.device):
            return self.make_cache(config.n_layers, config.n_kv_heads, config.head_dim, capacity)

    def __call__(self, ids: Sequence[int], positions: Sequence[int], cache) -> Float[Tensor, "V"]:
        """Logits after the last of n new tokens; their keys and values are in the cache then.

        Args:
            ids, positions: n ints each, n ≥ 1.
            cache: from `new_cache`, the same one for all of a text.

        Raises ValueError when there are not as many positions as ids.
        """
        if len(ids) != len(positions):
            raise ValueError(f"{len(ids)} ids and {len(positions)} positions: each token needs one")
        self.fed.append(len(ids))
        device = self.model.device
        batch = Batch.of([Chunk(list(ids), n_past=int(positions[0]))], device=device)
        batch = replace(batch, positions=torch.tensor(list(positions), dtype=torch.long, device=device))
        return self.model.forward(batch, _OneText(cache), self.parts)[0]


class _OneText(KVCache):
    """The engine's kind of cache around a simple one, for a single text."""

    def __init__(self, cache):
        self.cache = cache

    def update(self, layer: int, k: Tensor, v: Tensor, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """What the simple cache returns, as the only request's."""
        return [self.cache.update(layer, k, v)]


@contextmanager
def tensors_like(dtype: torch.dtype, device: torch.device | str) -> Iterator[None]:
    """While a learner's cache is made, `torch.empty` and its kin give tensors of this dtype on this device."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            yield
    finally:
        torch.set_default_dtype(before)
