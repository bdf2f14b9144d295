"""Probes of lab 08: four ways to shrink the cache."""

from __future__ import annotations

from llmcourse.checks import exercise, probe

from .smaller_cache_inputs import HINTS, attended, feed, held, keys_and_values, spread

OWN_WORK = ("llmcourse.cache.packed", "llmcourse.cache.quantized", "llmcourse.cache.sliding", "llmcourse.engine",
            "llmcourse.workbook", "torch.quantize_per_tensor", "torch.quantize_per_channel",
            "torch.fake_quantize_per_tensor_affine", "transformers")

for name in ("quantize_kv", "dequantize_kv", "QuantizedCache", "SlidingWindowCache"):
    exercise(name, hints=HINTS[name], forbids=OWN_WORK)

# ---- quantize_kv ----

@probe("quantize_kv", points=2,
       hint="scale = (high − low) / (2^bits − 1), zero = round(−low / scale), code = round(x / scale) + zero.")
def one_group(answer, rng):
    return list(answer.quantize_kv(spread(rng, 1, 1, 12, group=12), 4, 12))

@probe("quantize_kv", points=2,
       hint="A scale belongs to `group` channels of one token and one head: not to all heads, all tokens or all groups.")
def every_group_has_its_own_scale(answer, rng):
    sizes = rng.shuffled([1e-3, 0.1, 1.0, 40.0])
    x = [spread(rng, 3, 2, 12, group=6, size=size) for size in sizes]
    return list(answer.quantize_kv(_interleaved(x), 4, 6))

@probe("quantize_kv", points=2,
       hint="The grid always holds 0: low is at most 0 and high at least 0, also where all numbers have the same sign.")
def the_range_holds_0(answer, rng):
    x = rng.integers(1, 15, 3, 2, 8) + rng.uniform(3, 2, 8, low=-0.3, high=0.3)
    x[..., 5] = 15
    return [list(answer.quantize_kv(one, 4, 8)) for one in (x, -x)]

@probe("quantize_kv", points=2,
       hint="A group of zeros has high = low, and dividing by that scale gives NaN: such a group has scale 1.")
def a_group_of_zeros(answer, rng):
    x = spread(rng, 2, 3, 8, group=4)
    x[:, rng.integers(0, 3), 4:] = 0
    return list(answer.quantize_kv(x, 4, 4))

@probe("quantize_kv",
       hint="The range of a group reaches to 0, so equal numbers have one too, unless they are 0: 0.3, 0.3, 0.3 is not 0.")
def a_group_of_equal_numbers(answer, rng):
    x = spread(rng, 2, 3, 8, group=4)
    x[0, rng.integers(0, 3), 4:], x[1, rng.integers(0, 3), :4] = rng.uniform(low=0.2, high=0.4), -rng.uniform(low=3, high=9)
    return list(answer.quantize_kv(x, 4, 4))

@probe("quantize_kv", points=2, hint="Rounding x / scale and zero may both go up: clamp codes to 0 … 2^bits − 1, or one needs a bit more.")
def codes_keep_their_bits(answer, rng):
    x = rng.choice([0.25, 2.0, 32.0]) * _with_edges(rng, 16, low=-1.5, high=13.5)
    return [list(answer.quantize_kv(x, 4, 16)), int(answer.quantize_kv(x, 4, 16)[0].max())]

@probe("quantize_kv", hidden=True, hint="With 8 bits the codes reach 255: the grid has 2^bits − 1 steps.")
def eight_bits(answer, rng):
    return list(answer.quantize_kv(spread(rng, 2, 3, 12, bits=8, group=6), 8, 6))

@probe("quantize_kv", hidden=True, hint="codes and zero are uint8, scale has the dtype of x.")
def types(answer, rng):
    return list(answer.quantize_kv(spread(rng, 2, 1, 4).double(), 4, 4))

@probe("quantize_kv", hidden=True, hint="x must stay as it was: write into tensors of your own.")
def input_untouched(answer, rng):
    x = spread(rng, 2, 2, 4)
    return [answer.quantize_kv(x, 4, 4)[0], x]

# ---- dequantize_kv ----

@probe("dequantize_kv", hint="A number is (code − zero) · scale.")
def codes_become_numbers(answer, rng):
    codes, zero = rng.integers(9, 16, 1, 1, 6), rng.integers(1, 9, 1, 1, 1)
    return answer.dequantize_kv(codes.byte(), rng.uniform(1, 1, 1, low=0.5, high=2), zero.byte(), 6)

@probe("dequantize_kv", points=2,
       hint="Codes below the zero point are negative numbers, and uint8 has none: it wraps around. Change the type first.")
def codes_below_the_zero_point(answer, rng):
    codes, zero = rng.integers(0, 7, 1, 1, 6), rng.integers(8, 15, 1, 1, 1)
    return answer.dequantize_kv(codes.byte(), rng.uniform(1, 1, 1, low=0.5, high=2), zero.byte(), 6)

@probe("dequantize_kv", points=2,
       hint="Scale number i belongs to the channels i · group to (i + 1) · group − 1: neighbours, not every i-th channel.")
def each_group_its_own_scale_and_zero(answer, rng):
    scale, zero = rng.uniform(3, 2, 4, low=0.01, high=5), rng.integers(0, 256, 3, 2, 4)
    return answer.dequantize_kv(rng.integers(0, 256, 3, 2, 12).byte(), scale, zero.byte(), 3)

@probe("dequantize_kv", hidden=True, hint="The result has the dtype of scale.")
def the_type_of_scale(answer, rng):
    scale, zero = rng.uniform(2, 1, 2, low=0.01, high=5).double(), rng.integers(0, 16, 2, 1, 2)
    return answer.dequantize_kv(rng.integers(0, 16, 2, 1, 8).byte(), scale, zero.byte(), 4)

@probe("dequantize_kv", hidden=True, hint="codes, scale and zero must stay as they were.")
def arguments_untouched(answer, rng):
    codes, zero = rng.integers(0, 16, 2, 3, 4).byte(), rng.integers(0, 16, 2, 3, 2).byte()
    scale = rng.uniform(2, 3, 2, low=1, high=2)
    return [answer.dequantize_kv(codes, scale, zero, 2), codes, scale, zero]

# ---- QuantizedCache ----

@probe("QuantizedCache", points=2,
       hint="The new tokens come back quantized too, keys with the keys' scales and values with the values'.")
def new_tokens_come_back_quantized(answer, rng):
    return feed(answer.QuantizedCache(4, 4), 0, keys_and_values(rng, 5))

@probe("QuantizedCache", points=2,
       hint="New tokens go behind those that are there, and the old ones come back as before: K is [T, Hkv, D].")
def tokens_go_behind(answer, rng):
    return feed(answer.QuantizedCache(4, 4), 0, keys_and_values(rng, 3, 1, 1, 2))

@probe("QuantizedCache", hint="Every layer keeps its own, and two caches share nothing: keep it in self, by layer.")
def layers_and_caches_stay_apart(answer, rng):
    (a, b, c), one, other = keys_and_values(rng, 4, 2, 1), answer.QuantizedCache(4, 4), answer.QuantizedCache(4, 4)
    steps = [(one, 0, a), (one, 2, b), (other, 0, c), (one, 0, c), (other, 2, a)]
    return [feed(cache, layer, [piece]) for cache, layer, piece in steps]

@probe("QuantizedCache", points=3,
       hint="Keep packed codes, scales and zero points, and nothing else: two 4-bit codes share a byte (use pack).")
def few_bytes_are_held(answer, rng):
    cache, pieces = answer.QuantizedCache(4, 16), keys_and_values(rng, *[8] * 66, head_dim=32, group=16)
    token, leanest = 2 * 3 * (32 // 2 + 2 * (4 + 1)), []  # bytes: codes, and a float32 and a byte for each group
    for i, piece in enumerate(pieces, 1):
        got = feed(cache, 0, [piece])
        leanest.append(held(cache) / (8 * i))  # buffers that double have room to spare, but are full now and then
    said = f"{min(leanest):.0f} bytes a token at the least, want {token}"
    return ["few" if min(leanest) <= 1.25 * token and leanest[-1] <= 2.5 * token else said, got[0]]

@probe("QuantizedCache", hidden=True, hint="8 bits work the same way: hand bits and group on to your functions.")
def eight_bits_and_other_groups(answer, rng):
    return feed(answer.QuantizedCache(8, 6), 1, keys_and_values(rng, 4, 1, head_dim=12, bits=8, group=6))

@probe("QuantizedCache", hidden=True, hint="K and V have the dtype of k; k and v stay as they were.")
def type_and_arguments(answer, rng):
    k, v = (one.double() for one in keys_and_values(rng, 3)[0])
    return [*answer.QuantizedCache(4, 4).update(0, k, v), k, v]

@probe("QuantizedCache", hidden=True, hint="The caller may reuse the memory of k and v: keep nothing that is a part of it.")
def memory_of_the_caller_may_change(answer, rng):
    cache, (a, b) = answer.QuantizedCache(8, 4), keys_and_values(rng, 3, 2, bits=8)
    cache.update(0, *a), [tensor.zero_() for tensor in a]
    return feed(cache, 0, [b])

# ---- SlidingWindowCache ----

@probe("SlidingWindowCache", hint="While everything fits, nothing is forgotten: a row sees its own key and all before it.")
def all_is_seen_while_it_fits(answer, rng):
    k, v = rng.normal(6, 2, 4), rng.normal(6, 2, 4)
    return [attended(answer.SlidingWindowCache(7, 0), 0, k, v, pieces) for pieces in ([6], [1] * 6, [2, 4])]

@probe("SlidingWindowCache", points=3,
       hint="A window of w is the token itself and the w − 1 before it: j > p − w. One more or one fewer is wrong.")
def the_edge_of_the_window(answer, rng):
    w = rng.integers(4, 8)
    k, v = rng.normal(w + 3, 2, 4), rng.normal(w + 3, 2, 4)
    return [attended(answer.SlidingWindowCache(w, 0), 0, k[:n], v[:n], [1] * n) for n in (w - 1, w, w + 1, w + 3)]

@probe("SlidingWindowCache", points=3,
       hint="The first n_sink tokens are seen for ever, and take no place of the window: w + s keys in all.")
def sinks_stay_beside_the_window(answer, rng):
    k, v = rng.normal(20, 2, 4), rng.normal(20, 2, 4)
    return [attended(answer.SlidingWindowCache(5, s), 0, k, v, [1] * 20)[-4:] for s in (3, 1)]

@probe("SlidingWindowCache", points=2,
       hint="While the window still reaches back to the sinks they are the same keys: seen twice, they would weigh double.")
def no_key_is_seen_twice(answer, rng):
    k, v = rng.normal(9, 1, 6), rng.normal(9, 1, 6)
    return [attended(answer.SlidingWindowCache(6, s), 0, k, v, [1] * 9) for s in (2, 4)]

@probe("SlidingWindowCache", points=3,
       hint="In a step of several tokens each row has its own window, which ends at its own position.")
def each_row_has_its_own_window(answer, rng):
    k, v = rng.normal(17, 2, 4), rng.normal(17, 2, 4)
    return [attended(answer.SlidingWindowCache(5, 2), 0, k, v, pieces) for pieces in ([17], [3, 14])]

@probe("SlidingWindowCache", points=2, hint="Between two calls a layer holds at most window + n_sink tokens; m ≤ w + s + n.")
def little_is_held(answer, rng):
    cache, k, v = answer.SlidingWindowCache(5, 2), rng.normal(60, 2, 8), rng.normal(60, 2, 8)
    out, most = attended(cache, 0, k, v, [30, 3, 7, 19]), 2 * 7 * 2 * 8 * 4  # K and V, 7 tokens, 2 heads of 8, float32
    m = len(cache.update(0, k[59:], v[59:])[0])
    return ["few" if held(cache) <= 2 * most + 200 else f"{held(cache)} bytes, want {most}", m <= 5 + 2 + 1, out[-9:]]

@probe("SlidingWindowCache", points=2,
       hint="In each step a model asks all its layers, one after another: every layer counts its own positions.")
def layers_take_turns(answer, rng):
    cache, steps = answer.SlidingWindowCache(4, 1), [5, 1, 1, 2]
    k, v = rng.normal(9, 2, 4), rng.normal(9, 2, 4)
    starts = [sum(steps[:i]) for i in range(4)]
    return [attended(cache, layer, k[a : a + n] + layer, v[a : a + n] - layer, [n]) for a, n in zip(starts, steps) for layer in range(3)]

@probe("SlidingWindowCache", hidden=True, points=2, hint="However a text is cut into steps, its tokens see the same.")
def any_split_sees_the_same(answer, rng):
    k, v, cuts = rng.normal(24, 2, 4), rng.normal(24, 2, 4), sorted(rng.sample(range(1, 24), 4))
    pieces = [b - a for a, b in zip([0, *cuts], [*cuts, 24])]
    return attended(answer.SlidingWindowCache(rng.integers(2, 9), rng.integers(0, 4)), 0, k, v, pieces)

@probe("SlidingWindowCache", hidden=True, hint="Every layer counts for itself, and two caches share nothing.")
def layers_and_windows_stay_apart(answer, rng):
    k, v, one, other = rng.normal(12, 1, 4), rng.normal(12, 1, 4), *(answer.SlidingWindowCache(3, 1) for _ in range(2))
    return [attended(cache, layer, k[i:], v[i:], [4, 1, 1]) for i, (cache, layer) in
            enumerate([(one, 0), (one, 3), (other, 0), (one, 0), (other, 3)])]

@probe("SlidingWindowCache", hidden=True,
       hint="A window of one sees the token itself and the sinks; there may be more sinks than tokens.")
def the_smallest_windows(answer, rng):
    k, v = rng.normal(5, 2, 4), rng.normal(5, 2, 4)
    return [attended(answer.SlidingWindowCache(1, s), 0, k, v, pieces) for s in (0, 2, 9) for pieces in ([5], [1] * 5)]

@probe("SlidingWindowCache", hidden=True, hint="k and v stay as they were; keep copies, and turn no key again.")
def keys_stay_as_they_are(answer, rng):
    cache, k, v = answer.SlidingWindowCache(4, 1), rng.normal(5, 1, 3), rng.normal(5, 1, 3)
    first = [one.clone() for one in (k[:3], v[:3])]
    cache.update(0, *first)
    K, _, visible = cache.update(0, k[3:], v[3:])
    return [*first, K[visible[-1]].sort(0).values]


def _interleaved(parts):
    """Groups of six channels of [n, H, 12] tensors of different sizes, mixed over tokens, heads and groups."""
    x = parts[0].clone()
    x[1, 0, 6:], x[0, 1, :6], x[2] = parts[1][1, 0, 6:], parts[2][0, 1, :6], parts[3][2]
    return x


def _with_edges(rng, n: int, low: float, high: float):
    """[1, 1, n]: numbers well inside a grid of step 1, of which two are the edges."""
    x = rng.integers(0, 13, 1, 1, n) + rng.uniform(1, 1, n, low=-0.3, high=0.3)
    x[..., 0], x[..., n - 1] = low, high
    return x
