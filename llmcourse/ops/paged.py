"""Attention that reads keys and values where they lie, in the blocks of a pool.

Requests of one new token each, which is decode, go together: a few blocks of every request at a time, with the running
maximum and sum of an online softmax. A request is left out where it has no more blocks, so the work follows the real
lengths, not the longest one. A chunk of a prompt has many rows that share one gathered copy of their keys: the copy is
small beside the work.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from llmcourse.batch import Batch
from llmcourse.cache.paged import PagedKV

_TILE = 16  # blocks of every request that are read at once: 256 tokens


def attend_paged(q: Float[Tensor, "n Hq D"], kv: PagedKV, batch: Batch, scale: float, one: Callable) -> Float[Tensor, "n Hq D"]:
    """Causal attention of all requests over a pool.

    Args:
        one: (q, scale, K, V[, visible]) → [n, Hq, D], the table's attention of a single request, for chunks of several rows.
    """
    out = torch.empty(*q.shape[:2], kv.values.shape[-1], dtype=q.dtype, device=q.device)
    single = [r for r, chunk in enumerate(batch.chunks) if len(chunk.ids) == 1]
    for r in range(batch.n_requests):
        if len(batch.chunks[r].ids) > 1:
            out[batch.rows(r)] = one(q[batch.rows(r)], scale, *kv[r])
    if single:
        single.sort(key=lambda r: -batch.chunks[r].length)  # the longest first: who is left out stands at the end
        order = torch.tensor(single, device=q.device)
        rows = batch.starts[order].long()
        lengths = [batch.chunks[r].length for r in single]
        out[rows] = decode_paged(q[rows], kv.keys, kv.values, batch.tables[order], lengths, scale, kv.window)
    return out


def decode_paged(
    q: Float[Tensor, "R Hq D"],
    keys: Float[Tensor, "blocks b Hkv D"],
    values: Float[Tensor, "blocks b Hkv Dv"],
    tables: Int[Tensor, "R B"],
    lengths: list[int],
    scale: float,
    window: int | None = None,
) -> Float[Tensor, "R Hq Dv"]:
    """One query of each request over its own blocks.

    Args:
        lengths: T of each request, not increasing.
        window: a query sees the newest `window` tokens; None for all.

    What lies behind a request's last token (an old text, or NaN) is masked in the scores and in the values: zero times NaN
    would be NaN.

    Source: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Kwon et al. 2023, §4.1.
    """
    R, Hq, D = q.shape
    b, Hkv = keys.shape[1:3]
    wide = torch.promote_types(q.dtype, torch.float32)
    q = q.view(R, Hkv, Hq // Hkv, D)
    T = torch.tensor(lengths, device=q.device)
    largest = torch.full((R, Hkv, Hq // Hkv, 1), -torch.inf, dtype=wide, device=q.device)
    total = torch.zeros_like(largest)
    mixed = torch.zeros(R, Hkv, Hq // Hkv, values.shape[-1], dtype=wide, device=q.device)
    tile = _TILE * b
    first = 0 if window is None else max(0, min(lengths) - window) // tile * tile
    for start in range(first, lengths[0], tile):
        m = sum(length > start for length in lengths)  # requests that have tokens here: the first m
        blocks = tables[:m, start // b : start // b + _TILE]
        K, V = keys[blocks].flatten(1, 2), values[blocks].flatten(1, 2)  # [m, t, Hkv, D]
        position = torch.arange(start, start + K.shape[1], device=q.device)
        seen = position < T[:m, None]
        if window is not None:
            seen &= position >= T[:m, None] - window
        scores = torch.einsum("rhgd,rthd->rhgt", q[:m], K).to(wide) * scale
        scores = scores.masked_fill(~seen[:, None, None], -torch.inf)
        new = torch.maximum(largest[:m], scores.amax(-1, keepdim=True))
        safe = new.nan_to_num(neginf=0.0)  # nothing seen yet, behind a window: exp(−inf − 0) is 0
        shrink, weights = (largest[:m] - safe).exp(), (scores - safe).exp()
        V = V.masked_fill(~seen[:, :, None, None], 0)
        total[:m] = total[:m] * shrink + weights.sum(-1, keepdim=True)
        mixed[:m] = mixed[:m] * shrink + torch.einsum("rhgt,rthd->rhgd", weights, V.to(wide))
        largest[:m] = new
    return (mixed / total).to(q.dtype).view(R, Hq, -1)
