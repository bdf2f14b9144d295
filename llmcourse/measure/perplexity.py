"""Perplexity: how surprised a model is by a text. Numbers are comparable under one protocol only, so it is explicit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from llmcourse.batch import Batch, Chunk
from llmcourse.errors import OutOfMemory
from llmcourse.model.llama import check_ids
from llmcourse.ops import Limits, Parts, default_parts

_STEP_TOKENS = 256  # logits of a step: 256 × 49,152 × 4 bytes = 50 MB for the default model


@dataclass(frozen=True)
class Protocol:
    """What is scored, and what a scored token may look back on.

    Windows of `window` tokens begin every `stride` tokens; each is computed anew, with an empty cache. A token is scored in
    the first window that holds it, except the first token of all without a BOS, which nothing predicts, and the first
    `skip` tokens of each window. Windows that follow each other without overlap (stride = window, the usual protocol)
    give the tokens at their beginnings little to look back on; a small stride gives all nearly a whole window, and costs
    window/stride as much.

    Args:
        window: the most tokens at once, a BOS not counted.
        stride: from one window's first token to the next one's, 1 to `window`.
        bos: put the model's BOS before every window. Then the first token of each is scored as well.
        skip: tokens of every window, the first included, that are read and not scored.
    """

    window: int = 1024
    stride: int = 1024
    bos: bool = False
    skip: int = 0

    def __post_init__(self):
        if not (1 <= self.stride <= self.window and 0 <= self.skip < self.window):
            raise ValueError(f"a protocol needs 1 ≤ stride ≤ window and 0 ≤ skip < window, got {self}")

    def windows(self, n: int) -> Iterator[tuple[int, int, int]]:
        """(first token, first scored token, end) of each window over n tokens."""
        unscored = 0 if self.bos else 1
        done = 0
        for start in range(0, n, self.stride):
            stop = min(start + self.window, n)
            first = max(start + unscored, start + self.skip, done)
            if first < stop:
                yield start, first, stop
            done = stop
            if stop == n:
                return


@dataclass(frozen=True)
class Perplexity:
    """What was measured.

    Args:
        nll: negative log-likelihood of each scored token, in nats, float64.
        tokens: which token of the text each of them is.
        context: how many tokens (a BOS counted) the model had read before each in its window.
        protocol: how.
    """

    nll: Float[Tensor, "m"]
    tokens: Int[Tensor, "m"]
    context: Int[Tensor, "m"]
    protocol: Protocol

    @property
    def value(self) -> float:
        """exp(mean nll): the number of equally likely tokens that would be as surprising."""
        return math.exp(self.nll.mean())

    @property
    def bits_per_token(self) -> float:
        """Mean nll in bits."""
        return self.nll.mean().item() / math.log(2)

    def __str__(self) -> str:
        p = self.protocol
        return (
            f"perplexity {self.value:.3f} over {len(self.nll):,} tokens (window {p.window}, stride {p.stride}, "
            f"{'with' if p.bos else 'no'} BOS, {p.skip} skipped)"
        )


@torch.inference_mode()
def perplexity(
    model, ids: Sequence[int], protocol: Protocol = Protocol(), *, cache: str = "contiguous",
    parts: Parts | None = None, step_tokens: int | None = None,
) -> Perplexity:  # fmt: skip
    """Read a text through a cache and score each token under the model.

    Args:
        model: a loaded model.
        ids: the text as token ids, without BOS.
        cache: the spec of any cache; what the model sees of the past is what this cache keeps of it.
        parts: None takes the fastest tested table for the model's device. Its `cache` is asked too.
        step_tokens: tokens in one step; None takes what suits the cache. With "none" a window is one step.

    Raises ValueError when no token is scored or the model has no BOS to put first; PromptTooLong for a window beyond the
    model's context.
    """
    config, parts, ids = model.config, parts or default_parts(model.device.type), list(ids)
    if protocol.bos and config.bos_id is None:
        raise ValueError(f"{model.name} has no BOS: choose a protocol with bos=False")
    made = model.new_cache(cache, parts)
    kept = parts.cache(made)
    longest = protocol.window + protocol.bos
    step = longest if not made.keeps_past else step_tokens or min(made.step_tokens or longest, _STEP_TOKENS)
    compute = model.prepared(parts, kept, Limits(1, step, config.context))
    nll, tokens, context = [], [], []
    for start, first, stop in protocol.windows(len(ids)):
        read = [config.bos_id] * protocol.bos + ids[start:stop]
        check_ids(read, config)
        scores = _token_nll(compute, kept, read, step, model.device)
        offset = start + 1 - protocol.bos  # scores[i] belongs to token offset + i of the text
        nll.append(scores[first - offset :])
        tokens.append(torch.arange(first, stop))
        context.append(torch.arange(first, stop) - start + protocol.bos)
    if not nll:
        raise ValueError(f"{len(ids)} tokens, of which {protocol} scores none")
    return Perplexity(torch.cat(nll).cpu(), torch.cat(tokens), torch.cat(context), protocol)


def _token_nll(compute, cache, ids: list[int], step: int, device) -> Float[Tensor, "n-1"]:
    """Negative log-likelihood of ids[1:], each given all ids before it, in float64."""
    (slot, _), scores = cache.open(ids[:1], len(ids)), []
    try:
        for start in range(0, len(ids) - 1, step):
            chunk = ids[start : min(start + step, len(ids) - 1)]
            if not cache.reserve(slot, start + len(chunk)):
                raise OutOfMemory(f"no memory for a KV cache of {start + len(chunk):,} tokens: take a shorter window")
            logits = compute(Batch.of([Chunk(chunk, start, slot, n_sample=len(chunk))], cache, device))
            following = torch.tensor(ids[start + 1 : start + 1 + len(chunk)], device=logits.device)
            chosen = logits.gather(1, following[:, None])[:, 0].double()
            scores.append(logits.logsumexp(-1).double() - chosen)
    finally:
        cache.close(slot)
    return torch.cat(scores) if scores else torch.empty(0, dtype=torch.float64)
