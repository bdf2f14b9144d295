"""Lab 02: the learner's embedding and rotation."""

from __future__ import annotations

from dataclasses import replace

from llmcourse.ops import Parts

from .stage import Stage, Use


def learner_embed(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """`embed` has the part's own signature."""
    return replace(parts, embed=use("02.embed", answers["embed"]))


def learner_rope(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """`rope_angles` gives the angles, `apply_rope` turns queries and keys by them.

    A learner's angles know no scaling: a model whose context was stretched keeps the angles of `parts`.
    """
    angles, theirs = use("02.rope_angles", answers["rope_angles"]), parts.rope_angles

    def rope_angles(positions, head_dim, theta, scaling=None):
        return angles(positions, head_dim, theta) if scaling is None else theirs(positions, head_dim, theta, scaling)

    return replace(parts, rope_angles=rope_angles, rope=use("02.apply_rope", answers["apply_rope"]))


STAGES = (
    Stage("embed", ("02.embed",), learner_embed, replaces=("embed",)),
    Stage("rope", ("02.rope_angles", "02.apply_rope"), learner_rope, replaces=("rope_angles", "rope")),
)
