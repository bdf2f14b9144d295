"""The statements of lesson 02: the verdicts' logic, and what the default model says. Oracle: transformers' own rotation."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmcourse.claims import CORRECTED, FAILS, HOLDS, claims, embeddings_and_rope as lesson

A_ROTATION = lesson.Rotation(stretched=1e-7, moved=1e-6, turned_alone=0.2, turns=60, queries_and_keys=60)


def test_neighbours_hold_all_are_corrected_in_part_and_fail_together():
    near, far = lesson.NEAR - 1, lesson.NEAR
    verdicts = [lesson.judge_neighbours(9, 3, {"a": a, "b": b}).verdict for a, b in ((near, near), (near, far), (far, far))]
    assert verdicts == [HOLDS, CORRECTED, FAILS]


def test_the_correction_names_the_pairs_that_are_no_neighbours():
    assert "not python, snake" in lesson.judge_neighbours(9, 3, {"king, queen": 3, "python, snake": 3_000}).why


@pytest.mark.parametrize("change, verdict", [
    ({}, CORRECTED), ({"turns": 1}, HOLDS),
    ({"stretched": float("nan")}, FAILS), ({"stretched": 0.1}, FAILS), ({"moved": 0.01}, FAILS), ({"turned_alone": 1e-4}, FAILS),
], ids=["queries and keys", "once", "not a number", "lengths change", "place counts", "distance does not count"])  # fmt: skip
def test_the_verdict_on_rotation_follows_what_was_measured(change, verdict):
    assert lesson.judge_rotation(replace(A_ROTATION, **change)).verdict == verdict


@pytest.mark.parametrize("table", [torch.ones(49_152, 3), torch.randn(49_152, 8, generator=torch.Generator().manual_seed(5))],
                         ids=["one row for all", "random rows"])
def test_a_table_without_meaning_has_no_neighbours(table):
    """Planted tables: in the first every row is as near as any other, in the second nearness is chance."""
    between = {name: lesson.rows_between(table, *pair) for name, pair in lesson.PAIRS.items()}
    assert min(between.values()) >= lesson.NEAR
    assert lesson.judge_neighbours(*table.shape, between).verdict == FAILS


def test_an_engine_that_turns_nothing_fails():
    """Planted: with the identity in place of RoPE no length and no score changes, whoever moves."""
    assert lesson.judge_rotation(replace(A_ROTATION, stretched=0.0, moved=0.0, turned_alone=0.0)).verdict == FAILS


def test_c05_is_measured_and_corrected_for_the_snake():
    found = claims(["c05"])[0].check().found
    assert found.verdict == CORRECTED and "[49,152, 576]" in found.measured and found.why.startswith("not python, snake:")


def test_rows_between_are_counted_as_torchs_cosine_similarity_counts_them(model, tokenizer):
    table = model.weights.embed
    king, queen = (tokenizer.encode(word)[0] for word in (" king", " queen"))
    cosines = torch.nn.functional.cosine_similarity(table, table[king][None], dim=1)
    assert lesson.rows_between(table, " king", " queen") == (cosines > cosines[queen]).sum() - 1


def test_c06_is_measured_and_corrected():
    found = claims(["c06"])[0].check().found
    assert found.verdict == CORRECTED and "60 tensors" in found.measured and "queries and keys" in found.why


def test_a_rotation_of_transformers_has_the_lengths_and_scores_that_were_measured():
    """The same two properties for transformers' function, in float32: 1e-6 of the length, 1e-4 of the largest score."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    q, k = torch.randn(2, 1, 3, 50, 64, generator=torch.Generator().manual_seed(3))
    speeds = 100_000.0 ** (-torch.arange(0, 64, 2).float() / 64)

    def turned(start):
        angles = (torch.arange(50) + start)[:, None] * torch.cat([speeds, speeds])
        return apply_rotary_pos_emb(q, k, angles.cos()[None], angles.sin()[None])

    near, far = turned(0), turned(lesson.FAR)
    assert (far[0].norm(dim=-1) / q.norm(dim=-1) - 1).abs().max() < 1e-6
    scores = [a @ b.transpose(-1, -2) for a, b in (near, far)]
    assert (scores[0] - scores[1]).abs().max() / scores[0].abs().max() < 1e-4
