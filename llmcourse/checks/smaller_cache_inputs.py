"""What the probes of lab 08 draw, ask and count, and the hints of its exercises."""

from __future__ import annotations

HINTS = {
    "quantize_kv": (
        "Cut the channels of every head into groups, so that a group is one axis; then all formulas are about that axis.",
        "x.reshape(n, Hkv, D // group, group); low = min(smallest, 0), high = max(largest, 0), "
        "scale = (high − low) / (2^bits − 1), zero = round(−low / scale), code = round(x / scale) + zero.",
        "amin and amax over the last axis with keepdim=True, clamped at 0; torch.where(scale == 0, 1, scale); the codes "
        "clamped to 0 … 2^bits − 1, made uint8 and reshaped to x's shape; scale and zero without their last axis.",
    ),
    "dequantize_kv": (
        "Each code minus its group's zero point, times its group's scale.",
        "x = (code − zero) · scale, computed in the dtype of scale: uint8 would wrap around below 0.",
        "codes.reshape(n, Hkv, D // group, group).to(scale.dtype); subtract zero[..., None], multiply by scale[..., None]; "
        "reshape to the shape of codes.",
    ),
    "QuantizedCache": (
        "It is ConcatCache of lab 07 with six tensors for two: packed codes, scale and zero point, of k and of v.",
        "Keep (pack(codes, bits), scale, zero) of keys and of values for each layer; return "
        "dequantize_kv(unpack(packed, bits), scale, zero, group).",
        "self.kept = {} from layer to six tensors; update: quantize k and v, pack the codes, torch.cat each with what the "
        "layer has, store, and return both turned back.",
    ),
    "SlidingWindowCache": (
        "Keep beside K and V the position of every key. Then a row's window is a comparison of positions.",
        "visible = (at ≤ p) & ((at > p − window) | (at < n_sink)), with p a column of the new tokens' positions and `at` "
        "the positions of all keys: the kept ones, then the new ones.",
        "Join what the layer kept with k, v and their positions (the newest kept position + 1, …); that is K, V and `at`. "
        "Compute visible. Keep those with at > newest − window or at < n_sink. Return K, V, visible.",
    ),
}


def spread(rng, *shape: int, bits: int = 4, group: int = 4, size: float = 1.0):
    """Numbers [*shape] that no rounding decides: in each group of the last axis, well inside the steps of its own grid.

    Every group reaches below and above 0, and has its own step.
    """
    import torch

    most = 2**bits - 1
    groups = (*shape[:-1], shape[-1] // group)
    code = rng.integers(1, most, *groups, group)
    code[..., 0], code[..., 1] = 0, most
    code = code.gather(-1, rng.uniform(*groups, group).argsort(-1))
    inside = rng.uniform(*groups, group, low=-0.3, high=0.3)
    edge = rng.uniform(*groups, 1, low=-0.3, high=0.3)
    inside = torch.where((code == 0) | (code == most), edge, inside)
    zero, step = rng.integers(1, most, *groups, 1), size * rng.uniform(*groups, 1, low=0.5, high=2.0)
    return ((code - zero - inside) * step).reshape(shape)


def keys_and_values(rng, *lengths: int, heads: int = 3, head_dim: int = 8, **how):
    """A pair (k, v) of tensors [n, Hkv, D] for each length."""
    return [tuple(spread(rng, n, heads, head_dim, **how) for _ in range(2)) for n in lengths]


def feed(cache, layer: int, pieces) -> list:
    """What update returned for the last piece."""
    for k, v in pieces:
        got = cache.update(layer, k, v)
    return list(got)


def attended(cache, layer: int, k, v, pieces) -> list:
    """The attention of every token over what the cache showed it, [T, Hkv, D], k in the place of the queries.

    pieces: how many tokens each call of update brings. The order of the keys, and keys that nobody sees, change nothing.
    """
    import torch

    rows, start = [], 0
    for n in pieces:
        q = k[start : start + n]
        K, V, visible = cache.update(layer, q.clone(), v[start : start + n].clone())
        scores = torch.einsum("nhd,mhd->hnm", q, K).masked_fill(~visible, -torch.inf)
        rows.append(torch.einsum("hnm,mhd->nhd", scores.softmax(-1), V))
        start += n
    return torch.cat(rows)


def held(thing, seen: set | None = None) -> int:
    """Bytes of all tensors that hang on an object, through its attributes, lists, tuples and dicts."""
    import torch

    seen = set() if seen is None else seen
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, torch.Tensor):
        return thing.numel() * thing.element_size()
    if isinstance(thing, (list, tuple)):
        return sum(held(one, seen) for one in thing)
    inside = thing if isinstance(thing, dict) else getattr(thing, "__dict__", {})
    return sum(held(one, seen) for one in inside.values())
