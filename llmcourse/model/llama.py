"""One Llama-family decoder. It knows the order of the stages; the stages themselves come from the table of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.batch import Batch, Piece
from llmcourse.cache import NoCache
from llmcourse.errors import PromptTooLong
from llmcourse.ops import Parts, as_it_is, default_parts


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
        self._packed: dict[Callable, Llama] = {}

    @property
    def name(self) -> str:
        """The model's name, as its config gives it."""
        return self.config.name

    def packed(self, pack: Callable) -> Llama:
        """The same model with every linear weight replaced by `pack(weight)`.

        The copy is made once and shared by all engines on this model. The plain weights stay, for those who look at them:
        packing costs the memory of a second set (where plain ones are mapped from a file, only of the packed ones).
        """
        if pack is as_it_is:
            return self
        if pack not in self._packed:
            names = ("q", "k", "v", "o", "gate", "up", "down")
            layers = [replace(layer, **{name: pack(getattr(layer, name)) for name in names}) for layer in self.weights.layers]
            weights = replace(self.weights, layers=layers, head=pack(self.weights.head))
            self._packed[pack] = Llama(self.config, weights, self.source)
        return self._packed[pack]

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
        batch = Batch.of([Piece(ids, n_sample=len(ids))], self.device)
        return self.forward(batch, NoCache(), parts or default_parts(self.device.type))

    @torch.inference_mode()
    def forward(self, batch: Batch, cache, parts: Parts) -> Float[Tensor, "rows V"]:
        """One step: every token of the batch through every layer.

        Returns:
            logits in float32 (float64 for a float64 model) of `batch.sample_rows`; no rows when none are wanted.
        """
        config, weights = self.config, self.weights
        x = parts.embed(batch.ids, weights.embed)
        angles = parts.rope_angles(batch.positions, config.head_dim, config.rope_theta, config.rope_scaling)
        for number, layer in enumerate(weights.layers):
            h = parts.rms_norm(x, layer.attn_norm, config.rms_eps)
            x = x + self.attention(h, layer, number, angles, batch, cache, parts)
            h = parts.rms_norm(x, layer.mlp_norm, config.rms_eps)
            x = x + parts.swiglu(h, layer.gate, layer.up, layer.down, parts.linear)
        if len(batch.sample_rows) < batch.n_tokens:
            x = x[list(batch.sample_rows)]
        logits = parts.linear(parts.rms_norm(x, weights.norm, config.rms_eps), weights.head)
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def attention(
        self, h: Float[Tensor, "n d"], layer, number: int, angles: tuple[Tensor, Tensor], batch: Batch, cache, parts: Parts
    ) -> Float[Tensor, "n d"]:
        """Project, rotate, remember, attend, project back."""
        config, n = self.config, batch.n_tokens
        q = parts.linear(h, layer.q, layer.q_bias).view(n, config.n_heads, config.head_dim)
        k = parts.linear(h, layer.k, layer.k_bias).view(n, config.n_kv_heads, config.head_dim)
        v = parts.linear(h, layer.v, layer.v_bias).view(n, config.n_kv_heads, config.head_dim)
        if layer.q_norm is not None:
            q = parts.rms_norm(q, layer.q_norm, config.rms_eps)
            k = parts.rms_norm(k, layer.k_norm, config.rms_eps)
        q, k = parts.rope(q, *angles), parts.rope(k, *angles)
        kv = cache.update(number, k, v, batch)
        mixed = parts.attend(q, kv, batch, config.head_dim**-0.5)
        return parts.linear(mixed.flatten(1), layer.o, layer.o_bias)


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
