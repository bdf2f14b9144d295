"""Statements of lesson 04."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from .common import engine, english
from .ledger import CORRECTED, FAILS, HOLDS, Found, claim

PAGE = 192  # tokens
WORSE = 2.0  # times the perplexity, from which on a part counts as needed
WRITTEN = 8  # tokens that are generated
AHEAD = (-1, 0, 1, 2)  # of a row: the token before, its own, the next, the one after


@claim(
    "C08", "the feed-forward network has two layers",
    lessons=("04",), expected="a layer of the model has two feed-forward matrices, or does without the third",
    how=f"default model: its feed-forward matrices counted; perplexity of {PAGE} tokens of English with all of them, and "
        "with the two of a network down(silu(gate))",
)  # fmt: skip
def the_feed_forward_network_has_two_layers() -> Found:
    from llmcourse.model.weights import tensor_shapes

    matrices = [name.rsplit(".", 2)[1] for name in tensor_shapes(engine().model.config) if ".layers.0.mlp." in name]
    whole, two_layers = perplexity(), perplexity(without_up=True)
    kinds = f"{len(matrices)} matrices in a layer ({', '.join(matrices)})"
    measured = f"{kinds}; perplexity {whole:.1f}, without the third {two_layers:,.0f}"
    return judge_matrices(measured, len(matrices), whole, two_layers)


def perplexity(without_up: bool = False) -> float:
    """Of a page of English, for the default model, as it is or with two-layer feed-forward networks."""
    from torch.nn.functional import silu

    from llmcourse.ops import default_parts

    ids = engine().tokenizer.encode(english())[:PAGE]
    parts = default_parts(engine().model.device.type)
    if without_up:
        parts = replace(parts, swiglu=lambda x, gate, up, down, linear: linear(silu(linear(x, gate)), down))
    logprobs = engine().model(ids, parts=parts).log_softmax(-1)
    return math.exp(-logprobs[range(len(ids) - 1), ids[1:]].mean())


def judge_matrices(measured: str, n_matrices: int, whole: float, two_layers: float) -> Found:
    """The statement holds where there are two matrices, or where the others are not needed."""
    if n_matrices == 2 or two_layers < WORSE * whole:
        return Found(measured, HOLDS)
    why = "three matrices today (SwiGLU): of the two that widen, one is a gate for the other; two layers are older"
    return Found(measured, CORRECTED, why)


@claim(
    "C09", "the logits at the last position give the next token",
    lessons=("04", "05"),
    expected="row i names token i + 1 more often than any other near it, and each token that is generated greedily is the "
             "best of the last row",
    how=f"default model: best token of every row over {PAGE} tokens of English; {WRITTEN} tokens generated greedily",
)  # fmt: skip
def the_last_position_gives_the_next_token() -> Found:
    ids = engine().tokenizer.encode(english())[:PAGE]
    best = engine().model(ids).argmax(-1).tolist()
    hits = {ahead: share_of_hits(best, ids, ahead) for ahead in AHEAD}
    prompt = ids[: PAGE // 2]
    written = engine().generate(prompt, temperature=0, max_tokens=WRITTEN, ignore_eos=True).output_ids
    agree = sum(engine().model(prompt + written[:i])[-1].argmax() == token for i, token in enumerate(written))
    said = ", ".join(f"{ahead:+d} in {share:.0%}" for ahead, share in hits.items())
    generated = f"{agree} of {len(written)} generated tokens are the last row's best"
    measured = f"row i names token i {said} of the positions; {generated}"
    return judge_rows(measured, hits, agree == len(written))


def share_of_hits(best: list[int], ids: list[int], ahead: int) -> float:
    """In how many of the rows the best token is the one so many places ahead."""
    pairs = [(best[i], ids[i + ahead]) for i in range(len(ids)) if 0 <= i + ahead < len(ids)]
    return sum(one == other for one, other in pairs) / len(pairs)


def judge_rows(measured: str, hits: Mapping[int, float], all_generated_agree: bool) -> Found:
    """The statement holds where rows speak of the next token, and generation follows the last one."""
    if max(hits, key=hits.__getitem__) != 1:
        return Found(measured, FAILS, "rows name another token more often than the next one")
    if not all_generated_agree:
        return Found(measured, FAILS, "a generated token is not the best of the last row")
    return Found(measured, HOLDS)
