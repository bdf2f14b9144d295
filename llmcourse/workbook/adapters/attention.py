"""Lab 03: the learner's attention over one request becomes the engine's `attend` over all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from llmcourse.ops import Parts

from .stage import Stage, Use

def learner_attend(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """One call of `grouped_attention(q, k, v, n_past)` for each request in the step."""
    grouped = use("03.grouped_attention", answers["grouped_attention"])

    def attend(q, kv, batch, scale):
        own_scale = q.shape[-1] ** -0.5  # the learner's function scales by 1/√D
        queries = q if scale == own_scale else q * (scale / own_scale)
        out = torch.empty_like(q)
        for r in range(batch.n_requests):
            out[batch.rows(r)] = _one_request(grouped, queries[batch.rows(r)], *kv[r])
        return out

    return replace(parts, attend=attend)


def _one_request(grouped: Callable, q, k, v, visible=None):
    """visible: None where every query sees all keys up to its own; else a bool mask [n, T] of those it sees."""
    if visible is None:
        return grouped(q, k, v, len(k) - len(q))
    rows = [grouped(q[i : i + 1], k[seen], v[seen], int(seen.sum()) - 1) for i, seen in enumerate(visible)]
    return torch.cat(rows)


STAGES = (Stage("attention", ("03.grouped_attention",), learner_attend, replaces=("attend",)),)
