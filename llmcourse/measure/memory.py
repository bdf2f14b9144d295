"""What a model keeps in memory: bytes of its weights and of its KV cache, counted from its sizes.

A model is anything with n_layers, n_kv_heads, head_dim and n_params (a `ModelConfig`), a `CompressedCache`, or a
`KnownModel` around one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from llmcourse.measure import roofline
from llmcourse.measure.known_models import CompressedCache, KnownModel

BITS = 16  # of a weight, and of a number in the cache, unless asked otherwise


def kv_bytes_per_token(model, kv_bits: float = BITS) -> float:
    """Bytes that one more token adds to the cache: 2 (K and V) · L · Hkv · D · kv_bits / 8.

    Scales of a quantized cache are not in it. A `CompressedCache` has its own formula and number formats, whatever kv_bits.
    """
    config = _config(model)
    if isinstance(config, CompressedCache):
        return config.bytes_per_token
    return roofline.kv_bytes(config, 1, kv_bits)


def kv_bytes(model, context: int, batch: int = 1, kv_bits: float = BITS) -> float:
    """Bytes of the cache of `batch` requests with `context` tokens each; with a window no more than it needs are kept."""
    return kv_bytes_per_token(model, kv_bits) * kept_tokens(model, context) * batch


def kept_tokens(model, context: int) -> int:
    """How many of `context` tokens the cache must hold: all, or the window where the model has one."""
    window = model.window if isinstance(model, KnownModel) else None
    return context if window is None else min(context, window)


def weight_bytes(model, weight_bits: float = BITS) -> float:
    """Bytes of all parameters; scales of quantized weights are not in it."""
    return _config(model).n_params * weight_bits / 8


def context_that_outgrows(model, batch: int = 1, kv_bits: float = BITS, weight_bits: float = BITS) -> float | None:
    """Tokens of each request at which the cache is as large as the weights; None where a window stops it before."""
    tokens = weight_bytes(model, weight_bits) / (batch * kv_bytes_per_token(model, kv_bits))
    return tokens if kept_tokens(model, int(tokens)) == int(tokens) else None


def requests_that_fit(
    model, memory_bytes: float, context: int, kv_bits: float = BITS, weight_bits: float = BITS
) -> int:
    """How many requests of `context` tokens fit beside the weights; 0 where not even the weights do.

    What an engine needs besides (activations, the allocator's own) is left out: a real one fits fewer.
    """
    return max(0, int((memory_bytes - weight_bytes(model, weight_bits)) // kv_bytes(model, context, 1, kv_bits)))


@dataclass(frozen=True)
class Memory:
    """The whole account of one model.

    Args:
        context, batch: tokens of each request, and how many requests.
        kv_bits, weight_bits: bits of a number in the cache, and of a weight.
        memory_bytes: what there is; None where nobody said.
    """

    model: KnownModel
    context: int
    batch: int = 1
    kv_bits: float = BITS
    weight_bits: float = BITS
    memory_bytes: float | None = None

    def as_json(self) -> dict:
        """All numbers, in bytes; docs/cli.md says what each is."""
        model, kv = self.model, kv_bytes(self.model, self.context, self.batch, self.kv_bits)
        weights = weight_bytes(model, self.weight_bits)
        fits = None
        if self.memory_bytes is not None:
            fits = requests_that_fit(model, self.memory_bytes, self.context, self.kv_bits, self.weight_bits)
        return {
            "model": model.name,
            "context": self.context,
            "batch": self.batch,
            "kv_bits": None if isinstance(model.config, CompressedCache) else self.kv_bits,
            "weight_bits": self.weight_bits,
            "kv_bytes_per_token": _whole(kv_bytes_per_token(model, self.kv_bits)),
            "kv_tokens": kept_tokens(model, self.context),
            "kv_bytes": _whole(kv),
            "n_params": model.config.n_params,
            "weight_bytes": _whole(weights),
            "total_bytes": _whole(kv + weights),
            "outgrows_at": context_that_outgrows(model, self.batch, self.kv_bits, self.weight_bits),
            "memory_bytes": None if self.memory_bytes is None else _whole(self.memory_bytes),
            "requests_that_fit": fits,
            "source": model.source,
        }


def _config(model):
    return model.config if isinstance(model, KnownModel) else model


def _whole(value: float) -> float | int:
    """An int where nothing is lost: 819200, not 819200.0."""
    return int(value) if value == int(value) else value
