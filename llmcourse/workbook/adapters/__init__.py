"""How a lab's answers become parts of the engine: the labs' functions are simpler than the parts (docs/parts.md).

One module a lesson, each with its `STAGES`.
"""

from __future__ import annotations

from . import attention, embeddings_and_rope, kv_cache, sampling, smaller_cache, tokenizer, transformer
from .stage import Stage, Use

LEARNER_STAGES: tuple[Stage, ...] = (  # in the order in which a token meets them
    *tokenizer.STAGES,
    *embeddings_and_rope.STAGES,
    *kv_cache.STAGES,
    *smaller_cache.STAGES,
    *attention.STAGES,
    *transformer.STAGES,
    *sampling.STAGES,
)

__all__ = ["LEARNER_STAGES", "Stage", "Use"]
