"""The work of one step counted exactly, and the roofline that it stands under.

Counted are the operations and the bytes that no implementation can avoid; docs/measure.md gives the formulas.

- **FLOPs**: the matrix products, two for each multiply-add (a product and a sum): the seven linear weights of every layer
  for every token, attention's two products for every pair of a query and a key that it may see (the causal half), and
  the vocabulary for every row whose logits are wanted. Left out: norms, rotations, softmax, SiLU, biases, sums of the
  residual stream.
- **Bytes**: every weight once for the whole step, whatever the number of tokens; of an embedding table that is not also
  the output head, one row a token. Keys and values of every token of the request once: those of the past are read, those
  of this step are written. Left out: activations and logits, which stay in the processor's caches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from llmcourse.model.config import ModelConfig

BITS_PER_BYTE = 8


def forward_flops(config: ModelConfig, n_tokens: int, n_past: int = 0, n_logits: int = 1) -> int:
    """Floating point operations of one request's share of a step.

    Args:
        config: of the model.
        n_tokens: n, tokens of the request that the step computes.
        n_past: tokens of the request that are in the cache already.
        n_logits: of how many rows the logits are computed; an engine wants those of the last token only.
    """
    q, kv = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    linear = config.width * (2 * q + 2 * kv) + 3 * config.width * config.ffn_width
    pairs = n_tokens * n_past + n_tokens * (n_tokens + 1) // 2
    layer = 2 * n_tokens * linear + 2 * 2 * q * pairs
    return config.n_layers * layer + 2 * n_logits * config.vocab_size * config.width


def forward_bytes(
    config: ModelConfig, n_tokens: int, n_past: int = 0, weight_bits: float = 32, kv_bits: float = 32
) -> float:
    """Bytes that one step over one request moves between memory and processor, at the least.

    Args:
        config: of the model.
        n_tokens, n_past: as for `forward_flops`.
        weight_bits: bits of one weight, what its scales add included (4-bit groups of 32 with 16-bit scales: 4.5).
        kv_bits: bits of one number in the cache, its scales included; 0 without a cache.
    """
    return weight_bytes_read(config, n_tokens, weight_bits) + kv_bytes(config, n_tokens + n_past, kv_bits)


def weight_bytes_read(config: ModelConfig, n_tokens: int, weight_bits: float) -> float:
    """Bytes of the weights that a step over n tokens reads."""
    looked_up = 0 if config.tied else (n_tokens - config.vocab_size) * config.width  # rows in place of the whole table
    return (config.n_params + looked_up) * weight_bits / BITS_PER_BYTE


def kv_bytes(config: ModelConfig, n_kept: int, kv_bits: float) -> float:
    """Bytes of the keys and values of n tokens, in all layers."""
    return 2 * config.n_layers * config.n_kv_heads * config.head_dim * n_kept * kv_bits / BITS_PER_BYTE


@dataclass(frozen=True)
class Work:
    """What one step has to do: floating point operations, and bytes moved between memory and processor."""

    flops: float
    bytes: float

    @property
    def intensity(self) -> float:
        """Arithmetic intensity: FLOPs for each byte moved."""
        return self.flops / self.bytes


def step_work(
    config: ModelConfig, requests: Iterable[tuple[int, int]], weight_bits: float = 32, kv_bits: float = 32
) -> Work:
    """The work of one step over several requests: the weights are read once for all of them.

    Args:
        config: of the model.
        requests: (n_tokens, n_past) of each, with logits for the last token of each.
        weight_bits, kv_bits: as for `forward_bytes`.
    """
    requests = list(requests)
    flops = sum(forward_flops(config, n, past) for n, past in requests)
    kept = sum(n + past for n, past in requests)
    n_tokens = sum(n for n, _ in requests)
    return Work(flops, weight_bytes_read(config, n_tokens, weight_bits) + kv_bytes(config, kept, kv_bits))


def roofline_seconds(flops: float, bytes: float, peak_flops: float, bandwidth: float) -> float:
    """Seconds that the work takes at the least: computing and moving overlap, so the longer of the two counts.

    Args:
        flops, bytes: of the work.
        peak_flops: FLOPs per second; bandwidth: bytes per second.

    Source: Williams, Waterman and Patterson 2009, "Roofline: An Insightful Visual Performance Model".
    """
    return max(flops / peak_flops, bytes / bandwidth)


@dataclass(frozen=True)
class Ceilings:
    """What a machine can do at the most: bytes per second from memory, and FLOPs per second in matrix products."""

    bytes_per_s: float
    flops_per_s: float

    @property
    def ridge(self) -> float:
        """FLOPs per byte at which both ceilings are reached: work below it is bound by memory, above it by compute."""
        return self.flops_per_s / self.bytes_per_s

    def seconds(self, work: Work) -> float:
        """The least time for the work."""
        return roofline_seconds(work.flops, work.bytes, self.flops_per_s, self.bytes_per_s)

    def reachable(self, intensity: float) -> float:
        """FLOPs per second that work of this intensity can reach: the roof itself."""
        return min(self.flops_per_s, intensity * self.bytes_per_s)

    def bound(self, work: Work) -> str:
        """What the work waits for on this machine: "compute" or "memory" (at the ridge itself: "compute")."""
        return "compute" if work.intensity >= self.ridge else "memory"


@dataclass(frozen=True)
class Placed:
    """A real step on a machine's roofline.

    Args:
        work: what it had to do, counted.
        seconds: what it took, measured.
        ceilings: of the machine that it ran on.
    """

    work: Work
    seconds: float
    ceilings: Ceilings

    @property
    def flops_per_s(self) -> float:
        """Useful operations per second."""
        return self.work.flops / self.seconds

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second that had to be moved."""
        return self.work.bytes / self.seconds

    @property
    def mfu(self) -> float:
        """Model FLOP utilization: the share of the machine's FLOPs per second, 0 to 1. The figure for prefill.

        Source: Chowdhery et al. 2022, "PaLM", section 4.1.
        """
        return self.flops_per_s / self.ceilings.flops_per_s

    @property
    def mbu(self) -> float:
        """Model bandwidth utilization: the share of the machine's bytes per second, 0 to 1. The figure for decode."""
        return self.bytes_per_s / self.ceilings.bytes_per_s

    @property
    def bound(self) -> str:
        """"compute" or "memory", see `Ceilings.bound`."""
        return self.ceilings.bound(self.work)

    @property
    def share(self) -> float:
        """The least time over the real one, 0 to 1: how near the step comes to the roof."""
        return self.ceilings.seconds(self.work) / self.seconds
