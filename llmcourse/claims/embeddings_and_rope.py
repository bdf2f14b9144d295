"""Statements of lesson 02."""

from __future__ import annotations

from dataclasses import dataclass

from .common import engine, english
from .ledger import CORRECTED, FAILS, HOLDS, Found, claim

NEAR = 20  # rows that may stand between neighbours
PAIRS = {"king, queen": (" king", " queen"), "python, snake": (" python", " snake"),
         "Python, Java(Script)": (" Python", " JavaScript")}
TEXT, FAR = 64, 1_000  # tokens


@claim(
    "C05", "the embedding table is [V, d], and neighbours in it mean similar things: king and queen, python and snake, "
           "python and JavaScript",
    lessons=("02",), expected=f"fewer than {NEAR} rows are as near to the first word of a pair as the second one is",
    because=f"{NEAR} neighbours are a list that one still reads, a {49_152 // NEAR:,}th of the table; of a random table "
            "it would be one pair in as many",
    how="default model's table, cosine; animals in small letters, languages with a capital; a word of several tokens is "
        "represented by its first, so JavaScript by Java",
)  # fmt: skip
def neighbours_mean_similar_things() -> Found:
    table = engine().model.weights.embed.float()
    between = {name: rows_between(table, *pair) for name, pair in PAIRS.items()}
    rows, width = table.shape
    return judge_neighbours(rows, width, between)


def rows_between(table, word: str, other: str) -> int:
    """How many other rows are as near to the word's as the other word's is, or nearer."""
    tokenizer = engine().tokenizer
    mine, theirs = (tokenizer.encode(one)[0] for one in (word, other))
    directions = table / table.norm(dim=1, keepdim=True)
    cosines = directions @ directions[mine]
    as_near = cosines >= cosines[theirs]
    as_near[[mine, theirs]] = False
    return int(as_near.sum())


def judge_neighbours(rows: int, width: int, between: dict[str, int]) -> Found:
    """All pairs near: holds; some: a correction names the others; none: fails."""
    measured = f"table [{rows:,}, {width}]; rows between: " + ", ".join(f"{name} {n:,}" for name, n in between.items())
    distant = [name for name, n in between.items() if n >= NEAR]
    if not distant:
        return Found(measured, HOLDS)
    why = f"not {'; not '.join(distant)}: a row stands for all meanings of its token, and the commonest one wins"
    return Found(measured, CORRECTED if len(distant) < len(between) else FAILS, why)


@dataclass(frozen=True)
class Rotation:
    """What a watched pass through the model shows.

    stretched: the largest relative change of a vector's length by the turn.
    moved: the largest change of a score, relative to the largest score, when the whole text stands FAR tokens later.
    turned_alone: the same when only the queries stand one token later.
    turns: how many tensors were turned in one pass. queries_and_keys: how many of each there are, together.
    """

    stretched: float
    moved: float
    turned_alone: float
    turns: int
    queries_and_keys: int


@claim(
    "C06", "RoPE rotates vectors by position",
    lessons=("02",), expected="lengths stay (to 1e-5), scores depend on the distance of two tokens only (to 1e-4 of the "
                              "largest, and by a hundredth of it when one of them moves), and it is the embeddings "
                              "that turn",
    because="a hundred times the rounding of float32 (1e-7) for a length, a thousand times for a sum of 64 products; and a "
            "change that is a hundred times larger than that is none of rounding's",
    how=f"default model, queries and keys of all layers for {TEXT} tokens of English, turned to positions from 0 and from "
        f"{FAR:,}",
)  # fmt: skip
def rope_rotates_vectors_by_position() -> Found:
    return judge_rotation(watch_rotation())


def watch_rotation() -> Rotation:
    """Run the model once, and turn its queries and keys again to other positions."""
    from dataclasses import replace

    import torch

    from llmcourse.ops import REFERENCE

    model = engine().model
    config, seen = model.config, []

    def watch(x, cos, sin):
        seen.append(x)
        return REFERENCE.rope(x, cos, sin)

    model(engine().tokenizer.encode(english())[:TEXT], replace(REFERENCE, rope=watch))

    def at(start):
        return REFERENCE.rope_angles(torch.arange(TEXT) + start, config.head_dim, config.rope_theta)

    def scores(q, k, q_start, k_start):
        q, k = REFERENCE.rope(q, *at(q_start)), REFERENCE.rope(k, *at(k_start))
        return torch.einsum("nhd,thd->hnt", q, k.repeat_interleave(config.n_heads // config.n_kv_heads, dim=1))

    def largest(differences):
        return max(one.abs().max().item() for one in differences)

    layers = list(zip(seen[0::2], seen[1::2]))
    here = [scores(q, k, 0, 0) for q, k in layers]
    return Rotation(
        stretched=largest(REFERENCE.rope(x, *at(FAR)).norm(dim=-1) / x.norm(dim=-1) - 1 for x in seen),
        moved=largest(scores(q, k, FAR, FAR) - old for (q, k), old in zip(layers, here)) / largest(here),
        turned_alone=largest(scores(q, k, 1, 0) - old for (q, k), old in zip(layers, here)) / largest(here),
        turns=len(seen),
        queries_and_keys=2 * config.n_layers,
    )


def judge_rotation(found: Rotation) -> Found:
    """A rotation by position, of queries and keys: a correction; of the embeddings, once: holds; no rotation: fails."""
    measured = (f"lengths change by {found.stretched:.0e}, scores by {found.moved:.0e} of the largest when the text stands "
                f"{FAR:,} tokens later, by {found.turned_alone:.0e} when only the queries move by one; "
                f"{found.turns} tensors turned in a pass")
    if not (found.stretched <= 1e-5 and found.moved <= 1e-4 and found.turned_alone >= 1e-2):  # NaN is no rotation
        return Found(measured, FAILS, "what was measured is no rotation whose scores know the distance only")
    if found.turns == found.queries_and_keys:
        return Found(measured, CORRECTED, "not the embeddings: the queries and keys, anew in every layer; values never turn")
    return Found(measured, HOLDS)
