"""A layer that is taught to look back. Oracle: what RoPE promises, scores that know the distance only."""

from __future__ import annotations

import pytest
import torch

from llmcourse.workbook.positions import BACK, WAYS, OneLayer, V, look_back


@pytest.mark.parametrize("way", WAYS)
def test_a_later_token_changes_no_earlier_row(way):
    layer = OneLayer(way, 16, torch.Generator().manual_seed(1))
    one, other = torch.randint(0, V, (1, 9), generator=torch.Generator().manual_seed(2)).repeat(2, 1)
    other[-1] = (other[-1] + 1) % V
    rows = layer(torch.stack([one, other]))
    assert torch.equal(rows[0, :-1], rows[1, :-1]) and not torch.equal(rows[0, -1], rows[1, -1])


@pytest.mark.parametrize("way, knows_order", [("none", False), ("learned", True), ("sinusoidal", True), ("RoPE", True)])
def test_only_without_a_way_the_order_of_the_past_is_lost(way, knows_order):
    layer = OneLayer(way, 16, torch.Generator().manual_seed(1))
    rows = layer(torch.tensor([[3, 1, 4, 2], [4, 3, 1, 2]]))[:, -1]
    assert torch.allclose(rows[0], rows[1], atol=1e-5) != knows_order


def test_rope_alone_carries_what_was_learned_to_positions_that_were_never_met():
    """The bound is half way: after sixty steps RoPE has 0.82 at positions 24 to 47, the learned rows 0.04."""
    far = {way: look_back(way, taught=24, examined=48, steps=60)[24 - BACK:] for way in ("learned", "RoPE")}
    assert sum(far["RoPE"]) / len(far["RoPE"]) > 0.5 > sum(far["learned"]) / len(far["learned"])


def test_a_way_that_does_not_exist_is_named():
    with pytest.raises(ValueError, match="'alibi'.*none, learned"):
        look_back("alibi")
