"""Named wrong answers of lab 08."""

from __future__ import annotations

import torch

from llmcourse.checks import edited, wrong

# ---- quantize_kv ----

for name, dims, who in [("one_scale_for_all", "(0, 1, 2, 3)", "the whole tensor shares"),
                        ("heads_share_a_scale", "(1, 3)", "all heads of a token share"),
                        ("tokens_share_a_scale", "(0, 3)", "all tokens of a head share"),
                        ("a_head_is_one_group", "(2, 3)", "all groups of a head share")]:
    edited(
        "quantize_kv", name,
        old="    low = grouped.amin(-1, keepdim=True).clamp(max=0)\n    high = grouped.amax(-1, keepdim=True).clamp(min=0)",
        new=f"    low = grouped.amin({dims}, keepdim=True).clamp(max=0).expand_as(grouped)[..., :1]\n"
            f"    high = grouped.amax({dims}, keepdim=True).clamp(min=0).expand_as(grouped)[..., :1]",
        says="A scale belongs to `group` channels", why=f"In it {who} one scale, so the largest number coarsens all others.",
    )  # fmt: skip

edited("quantize_kv", "the_range_begins_at_the_smallest", old=".clamp(max=0)", new="",
       says="The grid always holds 0", why="Its grid begins at the smallest number, even if that lies above 0.")
edited("quantize_kv", "the_range_ends_at_the_largest", old=".clamp(min=0)", new="",
       says="The grid always holds 0", why="Its grid ends at the largest number, even if that lies below 0.")
edited("quantize_kv", "divides_by_a_scale_of_zero", old="    scale = torch.where(scale == 0, 1, scale)\n", new="",
       says="scale 1", why="It divides a group of zeros by its scale, which is 0.")
edited("quantize_kv", "a_code_of_five_bits", old=".clamp(0, most)", new="",
       says="needs a bit more", why="It does not clamp, and where two roundings go up a code is 16.")
edited("quantize_kv", "cuts_off_instead_of_rounding", old="torch.round(grouped / scale)", new="torch.floor(grouped / scale)",
       says="round(x / scale)", why="It cuts x / scale off: the error is up to a whole step, and always to one side.")
edited("quantize_kv", "sixteen_steps", old="most = 2**bits - 1", new="most = 2**bits",
       says="2^bits − 1", why="It cuts the range into 2^bits steps, which would need one more code.")


@wrong("quantize_kv", says="zero = round(−low / scale)")
def symmetric(x, bits, group):
    """It spreads the codes evenly around 0, so a group that is mostly positive leaves half of them unused."""
    middle = 2 ** (bits - 1)
    grouped = x.reshape(*x.shape[:2], -1, group)
    scale = grouped.abs().amax(-1, keepdim=True) / (middle - 1)
    scale = torch.where(scale == 0, 1, scale)
    codes = (torch.round(grouped / scale) + middle).to(torch.uint8)
    return codes.reshape(x.shape), scale[..., 0], torch.full_like(scale[..., 0], middle).to(torch.uint8)


# ---- dequantize_kv ----

edited("dequantize_kv", "forgets_the_zero_point", old="(grouped - zero[..., None].to(scale.dtype))", new="grouped",
       says="(code − zero)", why="It multiplies codes by the scale and forgets the zero point.")
edited("dequantize_kv", "adds_the_zero_point", old="(grouped - zero", new="(grouped + zero",
       says="(code − zero)", why="It adds the zero point, where it must be taken away.")


@wrong("dequantize_kv", says="wraps around")
def subtracts_in_uint8(codes, scale, zero, group):
    """It subtracts in uint8, where 0 − 3 is 253."""
    grouped = codes.reshape(*codes.shape[:2], -1, group)
    return ((grouped - zero[..., None]) * scale[..., None]).reshape(codes.shape)


@wrong("dequantize_kv", says="neighbours, not every")
def every_ith_channel(codes, scale, zero, group):
    """It repeats the list of scales, so that channel i gets scale i and not its group's."""
    return (codes.to(scale.dtype) - zero.repeat(1, 1, group)) * scale.repeat(1, 1, group)


# ---- QuantizedCache ----

RETURNS = "return self._numbers(*new[:3]), self._numbers(*new[3:])"

edited("QuantizedCache", "codes_unpacked",
       old="        return pack(codes, self.bits), scale, zero\n\n    def _numbers(self, packed, scale, zero):\n"
           "        return dequantize_kv(unpack(packed, self.bits), scale, zero, self.group)",
       new="        return codes, scale, zero\n\n    def _numbers(self, packed, scale, zero):\n"
           "        return dequantize_kv(packed, scale, zero, self.group)",
       says="share a byte", why="It keeps each 4-bit code in a byte of its own: twice the memory.")
edited("QuantizedCache", "numbers_beside_the_codes", old="        self.kept[layer] = new\n",
       new="        self.kept[layer] = new\n        self.last = self._numbers(*new[:3]), self._numbers(*new[3:])\n",
       says="and nothing else",
       why="It keeps the numbers beside the codes: the error of 4 bits, and more memory than before.")
edited("QuantizedCache", "new_tokens_unquantized", old=RETURNS,
       new="return tuple(torch.cat([self._numbers(*new[i : i + 3])[: -len(k)], x]) for i, x in ((0, k), (3, v)))",
       says="come back quantized too",
       why="It returns the new tokens as they came, so a token changes between one step and the next.")
edited("QuantizedCache", "one_store_for_all_layers", old="        if layer in self.kept:",
       new="        layer = 0\n        if layer in self.kept:",
       says="Every layer keeps its own", why="It keeps the tokens of all layers in one place.")
edited("QuantizedCache", "only_the_newest", old=RETURNS,
       new="return self._numbers(*new[:3])[-len(k) :], self._numbers(*new[3:])[-len(v) :]",
       says="behind those that are there", why="It returns the new tokens alone.")
edited("QuantizedCache", "scales_of_the_keys_for_both", old="self._numbers(*new[3:])",
       new="self._numbers(new[3], *new[1:3])",
       says="with the keys' scales", why="It turns the values back with the scales of the keys.")

# ---- SlidingWindowCache ----

edited("SlidingWindowCache", "one_token_short", old="at > p - self.window)", new="at > p - self.window + 1)",
       says="One more or one fewer", why="Its window is one token short: it forgets to count the token itself.")
edited("SlidingWindowCache", "one_token_long", 
       old="(at > p - self.window) | (at < self.n_sink))\n        stays = (at > new[-1] - self.window)",
       new="(at >= p - self.window) | (at < self.n_sink))\n        stays = (at >= new[-1] - self.window)",
       says="One more or one fewer", why="Its window is one token long: w tokens before the token itself.")
edited("SlidingWindowCache", "sinks_are_dropped", old="stays = (at > new[-1] - self.window) | (at < self.n_sink)",
       new="stays = at > new[-1] - self.window", says="are seen for ever",
       why="It forgets the sinks with the rest, as soon as the window has passed them.")
edited("SlidingWindowCache", "sinks_take_places_in_the_window", old="self.window, self.n_sink = window, n_sink",
       new="self.window, self.n_sink = max(1, window - n_sink), n_sink", says="take no place of the window",
       why="It counts the sinks as a part of the window, so fewer of the newest tokens are seen.")
edited("SlidingWindowCache", "all_rows_share_the_last_window", old="visible = (at <= p) & ((at > p - self.window) | ",
       new="visible = (at <= p) & ((at > new[-1] - self.window) | ", says="each row has its own window",
       why="In a step of several tokens it gives all rows the window of the last one.")
edited("SlidingWindowCache", "rows_of_a_step_see_all_of_it",
       old="visible = (at <= p) & ((at > p - self.window) | (at < self.n_sink))",
       new="visible = at <= p", says="each row has its own window",
       why="A row sees all earlier tokens of its own step, however long that is.")
edited("SlidingWindowCache", "forgets_nothing", old="self.kept[layer] = K[stays], V[stays], at[stays]",
       new="self.kept[layer] = K, V, at", says="holds at most window + n_sink",
       why="It hides old tokens from the rows, and keeps them all the same.")
edited("SlidingWindowCache", "one_window_for_all_layers", old="self.kept.get(layer,", new="self.kept.get(layer := 0,",
       says="Every layer counts", why="All layers share one store.")


@wrong("SlidingWindowCache", says="weigh double")
class SinksTwice:
    """It puts sinks and window side by side without looking whether they overlap."""

    def __init__(self, window, n_sink):
        self.window, self.n_sink, self.kept = window, n_sink, {}

    def update(self, layer, k, v):
        K, V, at = self.kept.get(layer, (k[:0], v[:0], torch.arange(0)))
        n_past = int(at[-1]) + 1 if len(at) else 0
        new = torch.arange(n_past, n_past + len(k))
        K, V, at = torch.cat([K, k]), torch.cat([V, v]), torch.cat([at, new])
        p, sink = new[:, None], torch.nonzero(at < self.n_sink).flatten()
        seen = torch.cat([at[sink] <= p, (at <= p) & (at > p - self.window)], dim=1)
        stays = (at > new[-1] - self.window) | (at < self.n_sink)
        self.kept[layer] = K[stays], V[stays], at[stays]
        return torch.cat([K[sink], K]), torch.cat([V[sink], V]), seen


edited("quantize_kv", "a_constant_group_has_scale_1", old="torch.where(scale == 0, 1, scale)",
       new="torch.where(grouped.amin(-1, keepdim=True) == grouped.amax(-1, keepdim=True), 1, scale)", says="only a group of zeros",
       why="It gives every group of equal numbers scale 1, so that 0.3, 0.3, 0.3 becomes 0. The range reaches to 0, so only a group "
           "of zeros has no range.")


@wrong("SlidingWindowCache", says="for each layer")
class OnePositionForAllLayers:
    """It counts positions once for all layers, so that the second layer of a step begins where the first one ended. Keep
    the position for each layer."""

    def __init__(self, window, n_sink):
        self.window, self.n_sink, self.kept, self.n_past = window, n_sink, {}, 0

    def update(self, layer, k, v):
        K, V, at = self.kept.get(layer, (k[:0], v[:0], torch.arange(0)))
        new = torch.arange(self.n_past, self.n_past + len(k))
        self.n_past += len(k)
        K, V, at = torch.cat([K, k]), torch.cat([V, v]), torch.cat([at, new])
        p = new[:, None]
        visible = (at <= p) & ((at > p - self.window) | (at < self.n_sink))
        stays = (at > new[-1] - self.window) | (at < self.n_sink)
        self.kept[layer] = K[stays], V[stays], at[stays]
        return K, V, visible
