"""Quantized KV cache: keys and values in 8 or 4 bits, packed, with a scale and a minimum for every group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from llmcourse.cache.base import within
from llmcourse.cache.coded import CodedTokens
from llmcourse.cache.slots import Slots

TAIL = 32  # newest tokens that stay unquantized where keys are quantized per channel


@dataclass(frozen=True)
class Scheme:
    """Which values share a scale and a minimum.

    Args:
        bits: 8 or 4, of each value.
        keys: "token": `group` channels of one token and head; "channel": one channel of a head over `group` tokens.
        group: how many values. Values (V) are always quantized per token. Where the head size is no multiple of
            `group`, groups along it are the largest common divisor.
    """

    bits: int
    keys: str = "token"
    group: int = 64

    @property
    def block(self) -> int:
        """Tokens that are quantized together."""
        return self.group if self.keys == "channel" else 1

    @property
    def tail(self) -> int:
        """The newest tokens that are seen unquantized, at the least."""
        return TAIL if self.keys == "channel" else 0

    def n_quantized(self, length: int) -> int:
        """How many of `length` tokens the last of them sees quantized: whole blocks that lie before the tail."""
        return max(0, length - self.tail) // self.block * self.block


class QuantizedCache(Slots):
    """Keys and values in few bits.

    A token sees the same numbers however the text was cut into steps: whole blocks that end at least `scheme.tail`
    tokens before it (itself counted) quantized, the others as they were. Codes depend on the tokens of their block alone.

    Quantized per token there is no tail, and a token sees itself quantized. Quantized per channel, the unfinished block
    and the tail are kept unquantized beside the codes, at most tail + block − 1 tokens. A token cannot be taken back.

    Args:
        config: n_layers, n_kv_heads and head_dim are read.

    Source: Liu et al. 2024, "KIVI": keys per channel, values per token, the newest tokens unquantized.
    """

    kind = "quantized"

    def __init__(self, config, dtype: torch.dtype, device: torch.device | str, scheme: Scheme):
        super().__init__(config, dtype, device)
        if config.value_dim != config.head_dim:
            raise ValueError(f"a quantized cache needs values as wide as keys, got {config.value_dim} and {config.head_dim}")
        self.scheme = scheme
        self.step_tokens = 512 if scheme.tail else None  # a longer step would meet more of its own keys in both forms

    def _grow(self, kept: QuantizedSlot, needed: int) -> None:
        kept.make_room(needed)

    def _step(
        self, kept: QuantizedSlot, layer: int, k: Tensor, v: Tensor, n_past: int, window: int | None
    ) -> tuple[Tensor, ...]:
        """One request's step: (K, V), or (K, V, visible) where rows see the same token in different forms."""
        return kept.step(layer, k.transpose(0, 1), v.transpose(0, 1), n_past, window)

    def bytes_for(self, n_tokens: int) -> int:
        """Bytes of codes, scales, minima and unquantized tokens of a request of n tokens, over all layers.

        `nbytes` is more: it counts the room that is reserved for tokens to come.
        """
        config, n = self.config, self.scheme.n_quantized(n_tokens)
        exact = 2 * config.n_layers * config.n_kv_heads * config.head_dim * (n_tokens - n) * self.dtype.itemsize
        kept = self._slot(0)
        return exact + kept.keys.bytes_for(n) + kept.values.bytes_for(n)

    def _slot(self, capacity: int) -> QuantizedSlot:
        return QuantizedSlot(self.config, self.scheme, capacity, self.dtype, self.device)


class QuantizedSlot:
    """One request: codes of keys and values, and a ring of tokens that are not quantized yet."""

    def __init__(self, config, scheme: Scheme, capacity: int, dtype: torch.dtype, device: torch.device | str):
        shape, end = (config.n_layers, config.n_kv_heads, config.head_dim), (capacity, dtype, device)
        self.scheme, self.capacity, self.reserved = scheme, capacity, 0
        per_token = (scheme.bits, 1, scheme.group)
        self.keys = CodedTokens(shape, *((scheme.bits, scheme.group, 1) if scheme.keys == "channel" else per_token), *end)
        self.values = CodedTokens(shape, *per_token, *end)
        n_ring = scheme.tail + scheme.block - 1
        self.ring = torch.empty(2, config.n_layers, config.n_kv_heads, n_ring, config.head_dim, dtype=dtype, device=device)

    def make_room(self, n_tokens: int) -> None:
        """Room for the codes of what is quantized of n tokens. The ring is there from the start."""
        self.keys.make_room(self.scheme.n_quantized(n_tokens))
        self.values.make_room(self.scheme.n_quantized(n_tokens))
        self.reserved = max(self.reserved, n_tokens)

    def step(
        self, layer: int, k: Float[Tensor, "Hkv n D"], v: Float[Tensor, "Hkv n D"], n_past: int, window: int | None = None
    ) -> tuple[Tensor, ...]:
        """Quantize what became old, keep the rest as it is, and return what n new tokens see: (K, V) or (K, V, visible).

        window: of this layer alone, where it has one.
        """
        scheme, n = self.scheme, k.shape[1]
        total = n_past + n
        before, after = scheme.n_quantized(n_past), scheme.n_quantized(total)
        # Tokens that are not quantized yet, in order: positions before … n_past − 1 out of the ring, then the n new ones.
        # Column c of `exact` is position before + c.
        exact = torch.cat([self.ring[:, layer][:, :, self._places(before, n_past)], torch.stack([k, v])], dim=2)
        if after > before:  # the first after − before of them became old: whole blocks, quantized once and for good
            self.keys.write(layer, before, exact[0, :, : after - before])
            self.values.write(layer, before, exact[1, :, : after - before])
        # Back into the ring goes what is new and stays unquantized; what was there before stands in its place already.
        stays = max(after, n_past)
        self.ring[:, layer][:, :, self._places(stays, total)] = exact[:, :, stays - before :]
        # The first new token still sees positions from `seen` on unquantized, the last one only those from `after` on.
        seen = scheme.n_quantized(n_past + 1)
        first_exact = after if scheme.tail == 0 else seen  # without a tail every token sees itself quantized
        # What the rows see: positions 0 … after − 1 from their codes, then first_exact … total − 1 as they are. Positions
        # in both (first_exact … after − 1) stand there twice, and each row sees one of the two.
        kept = self.keys.read(layer, after), self.values.read(layer, after)
        K, V = (torch.cat([old, new[:, first_exact - before :]], dim=1).transpose(0, 1) for old, new in zip(kept, exact))
        if first_exact == after:  # every position once, in order
            return within((K, V), n, window)
        return K, V, form_mask(n_past, total, scheme, window).to(k.device)

    def _places(self, start: int, stop: int) -> Tensor:
        """Where positions start … stop − 1 stand in the ring."""
        return torch.arange(start, stop, device=self.ring.device) % max(1, self.ring.shape[3])

    def tensors(self) -> tuple[Tensor, ...]:
        """All that is held."""
        return *self.keys.tensors(), *self.values.tensors(), self.ring


@lru_cache(maxsize=8)  # a step asks for the same mask in every layer
def form_mask(n_past: int, total: int, scheme: Scheme, window: int | None = None) -> Bool[Tensor, "n m"]:
    """Which columns each new token sees: first the quantized tokens, then the unquantized ones, some of them twice."""
    row = torch.arange(n_past, total)[:, None]
    # Row i sees positions below limit[i] quantized, and those from there up to its own as they are.
    limit = torch.tensor([scheme.n_quantized(n) for n in range(n_past + 1, total + 1)])[:, None]
    quantized = torch.arange(scheme.n_quantized(total))
    exact = torch.arange(scheme.n_quantized(n_past + 1), total)
    visible = torch.cat([quantized < limit, (exact >= limit) & (exact <= row)], dim=1)
    return visible if window is None else visible & (torch.cat([quantized, exact]) > row - window)
