"""Lab 05: the learner's sampler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from llmcourse.ops import Parts

from .stage import Stage, Use


def learner_sampler(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """The learner's `sample` chooses every token; it gets float32 logits and the ids so far as a list."""
    mine = use("05.sample", answers["sample"])

    def sample(logits: Float[Tensor, "V"], params, u: float, previous_ids: Sequence[int]) -> int:
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return int(mine(wide, params, u, list(previous_ids)))

    return replace(parts, sample=sample)


FILTERS = ("repetition_penalty", "apply_temperature", "top_k_filter", "top_p_filter", "min_p_filter")
STAGES = (
    Stage("sampler", (*(f"05.{name}" for name in FILTERS), "05.sample"), learner_sampler, replaces=("sample",)),
)
