"""Statements of lesson 04."""

from __future__ import annotations

from collections.abc import Mapping

from .common import engine, english
from .ledger import CORRECTED, FAILS, HOLDS, Found, claim

PAGE = 192  # tokens
WRITTEN = 8  # tokens that are generated
CLEARLY = 2  # times as often; see `because`
AHEAD = (-1, 0, 1, 2)  # of a row: the token before, its own, the next, the one after


@claim(
    "C08", "the feed-forward network has two layers",
    lessons=("04",), expected="a layer of the model has two feed-forward matrices",
    because="they can be counted. Two were the rule until about 2022 (GPT-2, GPT-3, OPT), so the statement is not "
            "wrong but old",
    how="default model: feed-forward matrices of a layer, by name",
)  # fmt: skip
def the_feed_forward_network_has_two_layers() -> Found:
    from llmcourse.model.weights import tensor_shapes

    names = tensor_shapes(engine().model.config)
    return judge_matrices([name.rsplit(".", 2)[1] for name in names if ".layers.0.mlp." in name])


def judge_matrices(names: list[str]) -> Found:
    """The statement holds where a layer has two matrices; three are a correction, any other number refutes it."""
    measured = f"{len(names)} matrices in a layer ({', '.join(names)})"
    if len(names) == 2:
        return Found(measured, HOLDS)
    if len(names) != 3:
        return Found(measured, FAILS, "neither the two of the statement nor the three of SwiGLU")
    why = "three matrices today (SwiGLU): of the two that widen, one is a gate for the other; two layers are older"
    return Found(measured, CORRECTED, why)


@claim(
    "C09", "the logits at the last position give the next token",
    lessons=("04", "05"),
    expected=f"row i names token i + 1 at least {CLEARLY} times as often as any other near it, and each token that is "
             "generated greedily is the best of the last row",
    because="rows that knew nothing of their place, say “the” everywhere, would name every neighbour equally often; "
            f"twice is far beyond what {PAGE} positions give by chance",
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
    if hits[1] <= 0 or hits[1] < CLEARLY * max(share for ahead, share in hits.items() if ahead != 1):
        return Found(measured, FAILS, "rows do not name the next token more often than its neighbours")
    if not all_generated_agree:
        return Found(measured, FAILS, "a generated token is not the best of the last row")
    return Found(measured, HOLDS)
