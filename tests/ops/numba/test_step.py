"""The compiled step against the reference table, and against itself in every arrangement."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

pytest.importorskip("numba")

from llmcourse.batch import Batch, Chunk
from llmcourse.model.config import RopeScaling
from llmcourse.model.llama import Llama
from llmcourse.ops import REFERENCE
from llmcourse.ops.numba.weights import from_model
from tests.packed_model import HEADS_OF_48, SMALL, compiled, packed
from tests.random_model import random_model

IDS = [5, 9, 2, 77, 31, 8, 8, 60, 96, 3, 50, 12, 41, 7, 7, 1, 0, 22, 19, 88, 64, 33, 90, 4, 17, 55, 70, 71, 72, 6, 13, 94, 29, 2, 58]



def feed(step, pool, *pieces: Chunk):
    """Reserve, then one step: logits of the rows to sample."""
    for piece in pieces:
        assert pool.reserve(piece.slot, piece.length)
    return step(Batch.of(pieces, pool))


def whole(step, pool, ids=IDS):
    """Logits after every token of a request of its own."""
    slot, _ = pool.open(ids, len(ids))
    logits = feed(step, pool, Chunk(ids, 0, slot, n_sample=len(ids)))
    pool.close(slot)
    return logits


def reference(model, window_of_layer_1=None):
    """Logits of the text by the reference table, all of it at once; the middle layer may have a window."""
    row = torch.arange(len(IDS))
    visible = (row[None] <= row[:, None]) & (row[None] > row[:, None] - (window_of_layer_1 or len(IDS)))

    class Whole:
        def update(self, layer, k, v, batch):
            return [(k, v, visible)] if layer == 1 else [(k, v)]

    with torch.inference_mode():
        return model.forward(Batch.of([Chunk(IDS, n_sample=len(IDS))]), Whole(), REFERENCE)


def doubled(model):
    """The same model in float64."""

    def wide(weights):
        return replace(weights, **{f.name: value.double() for f in fields(weights)
                                   if isinstance(value := getattr(weights, f.name), torch.Tensor)})  # fmt: skip

    weights = replace(wide(model.weights), layers=[wide(layer) for layer in model.weights.layers])
    return Llama(model.config, weights)


def assert_as_exact_as_the_reference(logits, model, window=None):
    """Oracle: the reference in float64. Bound: four times what the reference loses in float32:
    each adds its terms in an order of its own."""
    exact = reference(doubled(model), window)
    lost = (reference(model, window) - exact).abs().max()
    assert 0 < lost < 1e-3 and (logits - exact).abs().max() <= 4 * lost


def with_extras(model, config, *, bias=False, qk_norm=False):
    """Biases of q, k, v and o, and q/k norms, as some families have them."""
    draw = torch.Generator().manual_seed(7)
    q, kv, d, D = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim, config.width, config.head_dim
    for layer in model.weights.layers:
        for name, n, wanted in (("q_bias", q, bias), ("k_bias", kv, bias), ("v_bias", kv, bias), ("o_bias", d, bias),
                                ("q_norm", D, qk_norm), ("k_norm", D, qk_norm)):  # fmt: skip
            if wanted:
                setattr(layer, name, torch.randn(n, generator=draw) * 0.3 + ("norm" in name))
    return model


def sized(D, Hq=4, Hkv=2, **more):
    return replace(SMALL, n_heads=Hq, n_kv_heads=Hkv, head_dim=D, **more)


LLAMA3 = RopeScaling("llama3", 6.0, 1.25, 5.0, 32)


@pytest.mark.parametrize(
    "config, extras",
    [
        (sized(16, 6, 2), {}), (sized(48, 2, 1), {}), (sized(64), {}), (sized(96, 3, 3), {}), (sized(128, 2, 1), {}),
        (sized(16, tied=False), {}), (sized(16), {"bias": True}), (sized(16), {"qk_norm": True}),
        (sized(16, rope_scaling=LLAMA3), {}), (sized(16, rope_scaling=RopeScaling("linear", 3.5)), {}),
        (sized(16, 8, 1, vocab_size=112, width=96, ffn_width=160), {"bias": True, "qk_norm": True}),
    ],
)  # fmt: skip
def test_float_weights_give_the_logits_of_the_reference(config, extras):
    """Head sizes, grouped heads, biases, norms of q and k, rotary scaling, tied and own heads."""
    model = with_extras(random_model(3, torch.float32, config), config, **extras)
    step, pool = compiled(config, from_model(model.weights))
    assert_as_exact_as_the_reference(whole(step, pool), model)


@pytest.mark.parametrize("window", [1, 5, 16, 20])
def test_a_window_hides_what_lies_before_it_in_its_layer(window):
    """Oracle: the reference with a mask. The middle layer alone has a window, so that a window of every layer, or of none,
    gives other logits."""
    config = sized(16)
    model = random_model(3, torch.float32, config)
    step, pool = compiled(config, from_model(model.weights))
    step.weights = step.weights._replace(windows=np.array([0, window, 0]))
    assert_as_exact_as_the_reference(whole(step, pool), model, window)
    parts = whole_in_parts(step, pool, 7)
    assert torch.equal(parts, whole(step, pool))


def whole_in_parts(step, pool, size):
    """The same text, `size` tokens a step."""
    slot, _ = pool.open(IDS, len(IDS))
    rows = [feed(step, pool, Chunk(IDS[a : a + size], a, slot, len(IDS[a : a + size]))) for a in range(0, len(IDS), size)]
    pool.close(slot)
    return torch.cat(rows)


def test_fine_activations_stay_within_a_hundredth_of_float32():
    """The whole step on packed weights. Oracle: the reference on the same weights as floats."""
    for config in (SMALL, HEADS_OF_48):
        source, model = packed(config)
        off = {}
        for mode in ("fast", "fine"):
            step, pool = compiled(config, source, mode)
            off[mode] = (whole(step, pool) - reference(model)).abs()
        assert off["fine"].mean() < 0.01 and off["fine"].max() < 0.05
        assert 0.01 < off["fast"].mean() < 0.5  # and the coarser one is coarser: the comparison can see a rounding


@pytest.fixture(scope="module", params=["fast", "fine", "float32"])
def arranged(request):
    """A step, its pool, and the logits of the text in one piece: for each mode, one with heads of 16, one with heads of 48."""
    cases = []
    for config in (SMALL, HEADS_OF_48):
        if request.param == "float32":
            source, mode = from_model(random_model(0, torch.float32, config).weights), "fine"
        else:
            source, mode = packed(config)[0], request.param
        step, pool = compiled(config, source, mode)
        cases.append((config, source, mode, step, pool, whole(step, pool)))
    return cases


def test_the_packed_model_is_not_degenerate(arranged):
    for *_, expected in arranged:
        assert len(set(expected.argmax(1).tolist())) >= 12


def test_a_text_split_anywhere_has_the_same_bits(arranged):
    for _, _, _, step, pool, expected in arranged:
        for split in range(1, len(IDS)):
            slot, _ = pool.open(IDS, len(IDS))
            first = feed(step, pool, Chunk(IDS[:split], 0, slot, n_sample=split))
            second = feed(step, pool, Chunk(IDS[split:], split, slot, n_sample=len(IDS) - split))
            pool.close(slot)
            assert torch.equal(torch.cat([first, second]), expected)
        assert torch.equal(whole_in_parts(step, pool, 1), expected)


def test_neighbours_of_any_kind_change_no_bit(arranged):
    """A prompt, a decoding request and a piece of a long prompt share each step with the one that is looked at."""
    for _, _, _, step, pool, expected in arranged:
        others = [pool.open(IDS, 64)[0] for _ in range(3)]
        mine, _ = pool.open(IDS, 64)
        feed(step, pool, Chunk(IDS[:20], 0, others[1]))
        logits = []
        for a in range(0, len(IDS), 5):
            part = IDS[a : a + 5]
            got = feed(step, pool, Chunk([9, 9, a], a // 5 * 3, others[0]), Chunk(part, a, mine, n_sample=len(part)),
                       Chunk([a], 20 + a // 5, others[1], 0), Chunk([3] * 6, a // 5 * 6, others[2]))  # fmt: skip
            logits.append(got[1:-1])
        for slot in (*others, mine):
            pool.close(slot)
        assert torch.equal(torch.cat(logits), expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_no_bit(arranged, threads):
    for config, source, mode, *_, expected in arranged:
        assert torch.equal(whole(*compiled(config, source, mode, threads)), expected)


def test_a_step_longer_than_the_work_space_changes_no_bit(arranged, monkeypatch):
    from llmcourse.ops.numba import prepared

    monkeypatch.setattr(prepared, "MOST_ROWS", 13)
    for config, source, mode, *_, expected in arranged:
        assert torch.equal(whole(*compiled(config, source, mode)), expected)


def test_a_position_off_by_one_is_seen(arranged):
    """The negative control of all of the above: the same comparison with a planted error."""
    for _, _, _, step, pool, expected in arranged:
        slot, _ = pool.open(IDS, len(IDS) + 1)
        feed(step, pool, Chunk(IDS[:9], 0, slot, n_sample=0))
        got = feed(step, pool, Chunk(IDS[9:], 10, slot, n_sample=len(IDS) - 9))
        pool.close(slot)
        assert not torch.equal(got, expected[9:])


def test_what_nobody_wrote_is_never_multiplied(arranged):
    """Free blocks, and the rest of a request's last block, hold NaN: left by another, or memory as it was."""
    for config, source, mode, *_, expected in arranged:
        step, pool = compiled(config, source, mode)
        pool.keys[:], pool.values[:] = np.nan, np.nan
        assert torch.equal(whole_in_parts(step, pool, 7), expected)
        assert torch.equal(whole(step, pool), expected)


def test_a_nan_in_one_requests_cache_spoils_that_request_alone(arranged):
    for _, _, _, step, pool, expected in arranged:
        slots = [pool.open(IDS, 40)[0] for _ in range(3)]
        feed(step, pool, *(Chunk(IDS[:-1], 0, slot, n_sample=0) for slot in slots))
        for array in (pool.keys, pool.values):
            clean = array.copy()
            array[1, pool.slots[slots[1]].blocks[0], 0, 3, 2] = np.nan
            got = feed(step, pool, *(Chunk(IDS[-1:], len(IDS) - 1, slot) for slot in slots))
            array[:] = clean
            assert torch.equal(got[0], expected[-1]) and torch.equal(got[2], expected[-1])
            assert not got[1].isfinite().any()
        for slot in slots:
            pool.close(slot)


@pytest.mark.parametrize("role", ["qkv", "o", "gate_up", "down", "head", "attn_norm", "mlp_norm", "norm"])
def test_a_nan_in_any_weight_comes_out(arranged, role):
    for _, _, mode, step, pool, _ in arranged:
        sound, role_weights = step.weights, getattr(step.weights, role)
        if isinstance(role_weights, np.ndarray):
            broken = role_weights.copy()
            broken[0] = np.nan
        else:
            field = "values" if "values" in role_weights._fields else "scale"
            array = getattr(role_weights, field).copy()
            array[:1] = np.nan if array.dtype == np.float32 else np.float16(np.nan).view(np.uint16)
            broken = role_weights._replace(**{field: array})
        step.weights = sound._replace(**{role: broken})
        got = whole(step, pool)
        step.weights = sound
        assert got[-1].isnan().any(), mode
