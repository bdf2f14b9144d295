# %% [markdown]
# # Lab 08 · Shrink the cache
# Four exercises, about ninety minutes. At the end the real model remembers its text in your codes, and in your window.
#
# | letter or word | meaning |
# |---|---|
# | n | tokens in this step |
# | T | tokens so far, this step included |
# | Hkv | key/value heads |
# | D | head size |
# | group | numbers that share a scale when they are quantized |
# | scale, zero point | what turns a code of a quantized group back into a number |

# %%
from llmcourse import Engine
from llmcourse.cache.codes import pack, unpack
from llmcourse.measure.perplexity import Protocol, perplexity
from llmcourse.text.corpus import speeches
from llmcourse.workbook import check, hint, load_mine, run_mine, your_code

import torch

# %% [markdown]
# ### 08.1 Numbers become codes
# A code is a whole number from 0 to 2^bits − 1. Each group gets its own evenly spaced grid: from the smallest number
# to the largest, and always over 0, so that a zero stays exactly zero.
#
# With low = min(x, 0) and high = max(x, 0) over the group:
#
# $$\text{scale} = \frac{high - low}{2^{bits} - 1} \qquad \text{zero} = \text{round}\left(\frac{-low}{scale}\right)
# \qquad \text{code} = \text{round}\left(\frac{x}{scale}\right) + \text{zero}$$
#
# *difficulty 3/5 · 25 minutes · unlocks: the engine's quantized cache (together with 08.2 and 08.3)*

# %% ex="quantize_kv"
def quantize_kv(x: torch.Tensor, bits: int, group: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Keys or values as small whole numbers, with a scale and a zero point for every group.

    Args:
        x: [n, Hkv, D], floating point, n ≥ 1. It stays as it was.
        bits: 8 or 4, of each code.
        group: so many neighbouring channels of one token and one head share a scale; divides D.

    Returns codes, scale, zero:
        codes: [n, Hkv, D], uint8, each from 0 to 2^bits − 1. What rounding pushes beyond is
            clamped. Round with torch.round.
        scale: [n, Hkv, D / group], in x's dtype: (high − low) / (2^bits − 1), where low and high
            are the group's smallest and largest number, or 0 where that is smaller or larger. A
            group of zeros has scale 1.
        zero: [n, Hkv, D / group], uint8: the code that means 0, round(−low / scale).

    Example: one token, one head, x = [-1, 0, 2, 4], 4 bits, one group of 4. low is −1, high 4, scale
    5/15 = 1/3, zero 3, codes [0, 3, 9, 15]. For x = [2, 4, 6, 8] low is 0: scale 8/15, zero 0,
    codes [4, 8, 11, 15].
    """
    ### BEGIN SOLUTION
    n, n_heads, head_dim = x.shape
    most = 2**bits - 1
    grouped = x.reshape(n, n_heads, head_dim // group, group)
    low = grouped.amin(-1, keepdim=True).clamp(max=0)
    high = grouped.amax(-1, keepdim=True).clamp(min=0)
    scale = (high - low) / most
    scale = torch.where(scale == 0, 1, scale)
    zero = torch.round(-low / scale)
    codes = (torch.round(grouped / scale) + zero).clamp(0, most)
    return codes.to(torch.uint8).reshape(x.shape), scale[..., 0], zero[..., 0].to(torch.uint8)
    ### END SOLUTION

# %% check="quantize_kv"
check("08.quantize_kv", quantize_kv=quantize_kv)

# %% [markdown]
# Check the docstring's first example, and try a head with one large channel: with one group for all, what happens to
# the small numbers beside it?

# %%
# NBVAL_CHECK_OUTPUT
with your_code():
    x = torch.tensor([[[-1.0, 0.0, 2.0, 4.0]]])
    print([part.flatten().tolist() for part in quantize_kv(x, bits=4, group=4)])
    outlier = torch.tensor([[[0.3, -0.2, 0.1, 0.4, 12.0, 0.2, -0.3, 0.1]]])
    for group in (8, 2):
        print(f"group {group}: codes {quantize_kv(outlier, 4, group)[0].flatten().tolist()}")

# %% [markdown]
# ### 08.2 And back
# The grid gives each code its number again. One trap lies in the types.
#
# *difficulty 2/5 · 10 minutes · unlocks: the engine's quantized cache (together with 08.1 and 08.3)*

# %% ex="dequantize_kv"
def dequantize_kv(codes: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, group: int) -> torch.Tensor:
    """The numbers that codes stand for: (code − zero) · scale.

    Args:
        codes: [n, Hkv, D], uint8.
        scale: [n, Hkv, D / group], floating point.
        zero: [n, Hkv, D / group], uint8.
        group: so many neighbouring channels share a scale and a zero point.

    Returns [n, Hkv, D] in the dtype of scale.

    Example: codes [0, 3, 9, 15], scale [1/3], zero [3] and group 4 give [-1, 0, 2, 4]. The first
    code lies below its zero point, and uint8 knows no numbers below 0.
    """
    ### BEGIN SOLUTION
    n, n_heads, head_dim = codes.shape
    grouped = codes.reshape(n, n_heads, head_dim // group, group).to(scale.dtype)
    x = (grouped - zero[..., None].to(scale.dtype)) * scale[..., None]
    return x.reshape(codes.shape)
    ### END SOLUTION

# %% check="dequantize_kv"
check("08.dequantize_kv", dequantize_kv=dequantize_kv)

# %% [markdown]
# There and back: an error is at most half of its group's scale. Each bit that is taken away doubles the scale.

# %%
# NBVAL_CHECK_OUTPUT
x = torch.randn(200, 3, 64, generator=torch.Generator().manual_seed(8))
with your_code():
    for bits in (8, 4):
        codes, scale, zero = quantize_kv(x, bits, group=32)
        error = (dequantize_kv(codes, scale, zero, 32) - x).abs()
        in_scales = error / scale.repeat_interleave(32, dim=-1)
        print(f"{bits} bits: mean error {error.mean():.4f}, at most {in_scales.max():.2f} of a scale")

# %% [markdown]
# ### 08.3 A cache that keeps codes
# Now the cache of lab 07, with other contents: it keeps codes, scales and zero points, and turns them back when it is
# asked. Two functions are given: `pack(codes, 4)` puts two 4-bit codes into one byte, `[…, D]` → `[…, D / 2]`, and
# `unpack(packed, 4)` takes them apart (in lab 09 you write them yourself). With 8 bits both return what they get.
#
# *difficulty 2/5 · 20 minutes · unlocks: the engine's quantized cache*

# %% ex="QuantizedCache"
class QuantizedCache:
    """Keys and values of every layer as packed codes.

    Args:
        bits: 8 or 4.
        group: so many neighbouring channels of a token and head share a scale; divides D.

    update(layer, k, v): quantizes this step's keys and values of one layer, keeps them packed
        behind those that are there, and returns all that the layer has seen, as numbers again.
        layer: its number, an int from 0; how many there are, nobody says.
        k, v: [n, Hkv, D] each, n ≥ 1. They stay as they were.
        Returns (K, V), each [T, Hkv, D], in k's dtype: the oldest token first, T counting the new
            ones. The new tokens come back quantized too.

    What it holds between two calls are packed codes, scales and zero points: no number of k or v
    itself. Every layer counts for itself, and two caches know nothing of each other.

    Example: with 4 bits, group 4, one head of size 4, update(0, [[[-1, 0.1, 2, 4]]], …) returns
    the keys [[[-1, 0, 2, 4]]]: 0.1 became 0. Then update(0, [[[2, 4, 6, 8]]], …) returns two
    tokens, and the first one is what it was. (Tensors are written as lists here.)
    """

    ### BEGIN SOLUTION
    def __init__(self, bits: int, group: int):
        self.bits, self.group = bits, group
        self.kept = {}

    def update(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        new = self._quantized(k) + self._quantized(v)
        if layer in self.kept:
            new = tuple(torch.cat([old, one]) for old, one in zip(self.kept[layer], new))
        self.kept[layer] = new
        return self._numbers(*new[:3]), self._numbers(*new[3:])

    def _quantized(self, x):
        codes, scale, zero = quantize_kv(x, self.bits, self.group)
        return pack(codes, self.bits), scale, zero

    def _numbers(self, packed, scale, zero):
        return dequantize_kv(unpack(packed, self.bits), scale, zero, self.group)
    ### END SOLUTION

# %% check="QuantizedCache"
check("08.QuantizedCache", QuantizedCache=QuantizedCache)

# %% [markdown]
# How much smaller is it? Count what your cache really holds, for 500 tokens with the heads of SmolLM2. Two lines to
# compare: float32 is what this course's engine keeps on a CPU, FP16 what a GPU keeps.

# %%
# NBVAL_CHECK_OUTPUT
def held(thing):
    """Bytes of all tensors inside an object."""
    if isinstance(thing, torch.Tensor):
        return thing.numel() * thing.element_size()
    if isinstance(thing, (list, tuple)):
        return sum(map(held, thing))
    parts = thing if isinstance(thing, dict) else getattr(thing, "__dict__", {})
    return sum(map(held, parts.values()))


k = torch.randn(500, 3, 64, generator=torch.Generator().manual_seed(1))
with your_code():
    print(f"{'float32':16} {2 * held(k):>9,} bytes\n{'FP16':16} {held(k):>9,} bytes")
    for bits, group in [(8, 64), (4, 64), (4, 16)]:
        cache = QuantizedCache(bits, group)
        cache.update(0, k, k)
        print(f"{bits} bits, group {group:<3} {held(cache):>9,} bytes")

# %% [markdown]
# A group of 16 pays for its scales: a float32 and a byte for every 16 codes. The engine's own cache rounds its scales
# to two bytes. Fewer bits for the codes, more for the scales: the bargain is lesson 09's too.

# %% [markdown]
# ### 08.4 A window that slides, and its sinks
# Forget what is old, except the first few tokens. The rule for the token at position p, with window w and s sinks: it
# sees position j ≤ p if **j > p − w** (itself and the w − 1 before it) **or j < s**.
#
# A step may bring several tokens. Then each of them has a window of its own, and some keys may be seen by the first row
# and not by the last. So `update` returns a third thing: which row may see which key. The engine's attention takes it
# as it is.
#
# *difficulty 4/5 · 30 minutes · unlocks: the engine's window cache*

# %% ex="SlidingWindowCache"
class SlidingWindowCache:
    """Keys and values of every layer: those of the first `n_sink` tokens, and of the newest `window`.

    Args:
        window: w, how many tokens a token sees, itself counted, the sinks not; at least 1.
        n_sink: s, how many of the first tokens are never forgotten; 0 or more.

    update(layer, k, v): takes this step's keys and values of one layer, and returns what the new
        tokens may look at.
        layer: its number, an int from 0; how many there are, nobody says.
        k, v: [n, Hkv, D] each, n ≥ 1: a prompt, or a part of one, or one token. They stay as they
            were. The first token that a layer gets has position 0, the next one 1, and so on. Keys
            are already rotated to these positions: keep them as they are.
        Returns (K, V, visible): K, V of [m, Hkv, D], visible [n, m], bool: row i says which of the
            m keys the i-th new token sees. It sees position j ≤ p if j > p − w or j < s, where p is
            its own position; and none twice. In which order the m keys stand is yours to choose,
            and keys that no row sees may be among them, but m is at most w + s + n.

    Between two calls it holds at most w + s tokens of a layer. Every layer counts for itself, and
    two caches know nothing of each other.

    Example: window 2, n_sink 1. Five tokens in one call: the last row sees positions 0, 3 and 4.
    One token more: it sees 0, 4 and 5. With window 2 and n_sink 0 it would see 4 and 5.
    """

    ### BEGIN SOLUTION
    def __init__(self, window: int, n_sink: int):
        self.window, self.n_sink = window, n_sink
        self.kept = {}

    def update(
        self, layer: int, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        K, V, at = self.kept.get(layer, (k[:0], v[:0], torch.arange(0)))
        n_past = int(at[-1]) + 1 if len(at) else 0
        new = torch.arange(n_past, n_past + len(k))
        K, V, at = torch.cat([K, k]), torch.cat([V, v]), torch.cat([at, new])
        p = new[:, None]
        visible = (at <= p) & ((at > p - self.window) | (at < self.n_sink))
        stays = (at > new[-1] - self.window) | (at < self.n_sink)
        self.kept[layer] = K[stays], V[stays], at[stays]
        return K, V, visible
    ### END SOLUTION

# %% check="SlidingWindowCache"
check("08.SlidingWindowCache", SlidingWindowCache=SlidingWindowCache)

# %% [markdown]
# Which positions does each of twelve tokens see, window 4, two sinks? Give each key its own position as its only number,
# and read them off. First all at once, then one by one.

# %%
# NBVAL_CHECK_OUTPUT
positions = torch.arange(12.0).reshape(12, 1, 1)


def seen(pieces, window=4, n_sink=2):
    """For each token the positions that it sees, the tokens coming in pieces."""
    cache, rows = SlidingWindowCache(window, n_sink), []
    for piece in positions.split(pieces):
        K, _, visible = cache.update(0, piece, piece)
        rows += [sorted(K[row].flatten().int().tolist()) for row in visible]
    return rows


with your_code():
    whole = seen(12)
    for p in (3, 5, 6, 11):
        print(f"token {p:2} sees {whole[p]}")
    print("the same one by one:", seen(1) == whole, "  and in fives:", seen(5) == whole)

# %% [markdown]
# ## Your caches in the engine
# **Save this notebook first.** The next cells read it as a file, check your answers, and run the real model with every
# stage that passes. A quantized cache serves an engine that is asked for one, `--cache int8` or `--cache int4`; a window
# cache one with `--cache window:…`.

# %%
prompt = "The capital of France is"
for cache in ("int8", "window:4+1"):
    print(f"── cache {cache} ──")
    run_mine(prompt, folder=".", cache=cache, max_tokens=12)
    print()

# %% [markdown]
# Four tokens and the first one: the sentence still hangs together, and what it is about is soon forgotten.
#
# The test that counts is a text that nobody wrote for us. Perplexity over the first 257 tokens of the newest speech,
# through your caches (or, where yours is not ready, the engine's):

# %%
engine = Engine()
ids = engine.tokenizer.encode(speeches()["2026-Trump-1"])[:257]
mine = load_mine(".")
whole = perplexity(engine.model, ids, Protocol(257, 257)).value
print(f"{'everything':12} {whole:6.2f}")
for cache in ("int8", "int4", "window:64+1", "window:64"):
    value = perplexity(engine.model, ids, Protocol(257, 257), cache=cache, parts=mine.parts).value
    print(f"{cache:12} {value:6.2f}   {100 * (value / whole - 1):+6.1f} %")
print(mine)

# %% [markdown]
# Your `int4` quantizes keys per token. The engine's own does it per channel, keeps the newest 32 tokens as they are, and
# loses far less: read why in the lesson, and how in `llmcourse/cache/quantized.py`. Your window copies what it keeps at
# every step. The engine's writes in a ring and moves nothing: `llmcourse/cache/sliding.py`.
#
# Next: the same codes for the weights. There it saves time as well, if it is done right. **Lesson 09.**
