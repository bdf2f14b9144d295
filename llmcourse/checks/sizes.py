"""A config for probes: a model's sizes under the names of `llmcourse.model.config.ModelConfig`, without the model's code."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Sizes:
    """What a lab's answers read of a `config`.

    (While a lab is graded the model's own modules may be hidden from its answers, and so from its probes.)
    """

    vocab_size: int
    width: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_width: int
    rms_eps: float = 1e-6
    rope_theta: float = 10_000.0
    tied: bool = True

    def with_(self, **changed) -> Sizes:
        """The same sizes but for those given."""
        return replace(self, **changed)
