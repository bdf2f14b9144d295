# %% [markdown]
# # 08 · Four ways to shrink the cache
# *2 hours with the lab. You need: lesson 03 (heads that share keys, the first-token sink) and lesson 07 (the KV cache).*
#
# **The idea.** A cache is heads × tokens × bits, so there are three things to save on: let query heads share keys, forget
# old tokens, or write each number with fewer bits. Each way has a price, and the price is not where one expects it.
#
# | letter or word | meaning | SmolLM2 |
# |---|---|---|
# | T | tokens so far | grows |
# | L | layers | 30 |
# | Hq | query heads | 9 |
# | Hkv | key/value heads | 3 |
# | D | head size | 64 |
# | quantization | storing numbers as small whole numbers and a scale | |
# | group | numbers that share a scale when they are quantized | |
# | scale, zero point | what turns a code of a quantized group back into a number | |
# | sliding window | only the last so many tokens are kept and seen | |
# | attention sink | a token, mostly the first, that collects the attention that a head has no better use for | |
# | perplexity | how many equally likely tokens the model hesitates between, on average over a text | |

# %%
from dataclasses import replace
from statistics import median

from llmcourse import Engine
from llmcourse.cache import make_cache
from llmcourse.cache.coded import dequantize, quantize
from llmcourse.claims import smaller_cache as claim
from llmcourse.measure.known_models import MODELS
from llmcourse.measure.memory import kv_bytes_per_token, weight_bytes
from llmcourse.measure.perplexity import Protocol, perplexity
from llmcourse.text.corpus import speeches
from llmcourse.workbook import explore, measured, plots, predict
from llmcourse.workbook.attention_maps import watch_attention

import torch

engine = Engine()
model = engine.model
ids = engine.tokenizer.encode(speeches()["2026-Trump-1"])   # younger than the model: it cannot know this text

# %% [markdown]
# ## First way: share heads
# Nothing is lost that the model was not trained without. In lesson 03 several query heads read the same keys and values:
# GQA, or MQA where all of them share one pair. The cache pays for Hkv, not for Hq.
#
# $$\text{bytes per token} = 2 \cdot L \cdot H_{kv} \cdot D \cdot \text{bytes per number}$$

# %%
# NBVAL_CHECK_OUTPUT
print("bytes per token in FP16 (two bytes a number), and if every query head had its own keys and values")
for name in ["SmolLM2-135M", "Llama-2-7B", "Llama-2-13B", "Llama-3-8B", "Llama-3-70B"]:
    config = MODELS[name].config
    own, shared = (kv_bytes_per_token(replace(config, n_kv_heads=heads)) for heads in (config.n_heads, config.n_kv_heads))
    print(f"{name:13} {config.n_heads:3} query heads share {config.n_kv_heads:2}: {shared:>9,.0f}   alone: {own:>9,.0f}   "
          f"saved: {own / shared:.0f}×")

# %% [markdown]
# Llama-3-8B has the width and depth of Llama-2-7B and a quarter of its cache; even the huge 70B needs less for a token than
# the old 7B. But this is decided before the training. For a model that is there, three ways are left.

# %% [markdown]
# ## Second way: fewer bits
# Four numbers, four bits. A code is a whole number from 0 to 15, so 16 evenly spaced marks must cover the group. Take
# the marks from the smallest number to the largest. Check the third one by hand: (2 − (−1)) / (1/3) = 9.

# %%
# NBVAL_CHECK_OUTPUT
x = torch.tensor([-1.0, 0.0, 2.0, 4.0])
scale = (x.max() - x.min()) / 15                    # the distance between two marks: 1/3
codes = torch.round((x - x.min()) / scale)
zero = int(codes[1])                                # the code of 0
print("scale", round(scale.item(), 4), "  codes", codes.int().tolist(), "  zero point", zero)
print("back: ", [round(((code - zero) * scale).item(), 4) for code in codes])
print("0.5 becomes", round((torch.round(0.5 / scale) * scale).item(), 4), " and 0.4 becomes",
      round((torch.round(0.4 / scale) * scale).item(), 4))

# %% [markdown]
# A number that is not on a mark moves to the nearest one: the error is at most half a scale. So everything hangs on the
# scale, and the scale hangs on the largest number *in the group*. One giant makes the marks coarse for all its neighbours.
#
# Who are the neighbours? Let us look at what is to be packed: the keys and the values of one head, over 160 tokens.

# %%
seen = watch_attention(model, ids[:160])
LAYER, HEAD = 18, 0
K, V = seen.k[LAYER, :, HEAD], seen.v[LAYER, :, HEAD]
plots.keys_and_values(K, V, LAYER, HEAD)

# %% [markdown]
# The keys have stripes: a few channels are large for *every* token. (RoPE turns pairs of channels, and the slow pairs
# hardly turn.) The values have hardly any. So the same plan cannot be good for both:
#
# - **per token**: a group is some channels of one token. Among keys the giants are in every group.
# - **per channel**: a group is one channel over some tokens. A giant is alone with itself, and small again.
#
# Play: bits, group, and whose numbers. Watch the points that lie between two marks. The engine keeps each group's minimum
# where the lab keeps a zero point: a channel that lives between 20 and 24 then spends all its marks there.

# %%
def packed_and_back(bits, group, what):
    """A token's keys (or a channel's, over the tokens) after their way through codes."""
    if what == "keys, per channel":
        back = dequantize(*quantize(K[None, :64], bits, group, 1), group, 1)[0]
        return plots.rounded(K[:64, CHANNEL], back[:, CHANNEL], bits, f"Channel {CHANNEL}, {group} tokens a group,")
    x = K if what == "keys, per token" else V
    back = dequantize(*quantize(x[None, 100:101], bits, 1, group), 1, group)[0, 0]
    return plots.rounded(x[100], back, bits, f"Token 100 of the {what.split(',')[0]}, groups of {group} channels,")


CHANNEL = int(K.abs().mean(0).argmax())           # one of the stripes
explore(packed_and_back, bits=(2, 8, 4), group=[64, 32, 16, 8],
        what=["keys, per token", "keys, per channel", "values, per token"])

# %% [markdown]
# ### What the model says to it
# Errors of numbers are not yet errors of a text. The judge is **perplexity**: let the model read a text that it cannot
# know, and ask at each token how surprised it is. Perplexity 17 means: as unsure as if it chose among 17 equally likely
# tokens. Two perplexities can be compared only under one protocol, so ours is written down.

# %%
protocol = Protocol(window=768, stride=768, bos=False)
text = ids[:768]
whole = perplexity(model, text, protocol)
print(whole)

# %% [markdown]
# Before you run on: INT4 keeps one eighth of the bits of float32.

# %%
predict("rise of perplexity with INT4 per token, group 64", 1, "%")

# %%
LONG = 32_768                                     # the length at which bits are counted: scales and minima included


def bits_of(spec):
    """Bits for each number in a long cache, all included."""
    n_bytes, floats = (make_cache(kind, model.config, model.dtype, "cpu").bytes_for(LONG) for kind in (spec, "contiguous"))
    return 32 * n_bytes / floats


quality = {}
for spec in ["int8", "int4", "int4:token/64", "int4:token/32", "int4:token/16"]:
    value = perplexity(model, text, protocol, cache=spec).value
    quality[spec] = bits_of(spec), 100 * (value / whole.value - 1)
    print(f"{spec:14} {quality[spec][0]:5.2f} bits a number   perplexity {value:6.2f}   {quality[spec][1]:+5.1f} %")
measured("rise of perplexity with INT4 per token, group 64", quality["int4:token/64"][1])

# %%
plots.cache_quality(quality)

# %% [markdown]
# INT8 is lossless for all practical purposes. INT4 per token is not: smaller groups help, and pay with more scales. The
# left square is **int4** as the engine does it (after KIVI, Liu et al. 2024): keys per channel over 32 tokens, values per
# token, and the newest 32 tokens left as they are, since a block needs all its tokens before it can be packed. It has fewer
# bits than the groups of 16, and hardly an error.
#
# A caution: 768 tokens are few. A tenth of a percent is noise here, sometimes with the wrong sign, and so may be which of
# two neighbouring groups is better.

# %% [markdown]
# ### Is it faster, too?
# Decode is memory-bound (lesson 06), so fewer bytes should mean less time. Measure the gap between two tokens after
# 400 tokens, the caches taking turns:

# %%
specs = ["contiguous", "int8", "int4", "window:128+4"]
gaps = {spec: [] for spec in specs}
for _ in range(3):
    for spec in specs:
        result = Engine(model, cache=spec).generate(ids[:400], temperature=0, max_tokens=7, ignore_eos=True)
        gaps[spec] += result.itl_s
for spec in specs:
    kept = make_cache(spec, model.config, model.dtype, "cpu").bytes_for(400)
    print(f"{spec:13} {kept / 1e6:6.2f} MB for 400 tokens   ITL {1000 * median(gaps[spec]):6.1f} ms   "
          f"the fastest {1000 * min(gaps[spec]):6.1f} ms")
slower = min(gaps["int4"]) / min(gaps["contiguous"])
print(f"the fastest steps: int4 takes {slower:.1f} times as long as the cache that keeps floats")

# %% [markdown]
# A number above 1 is worth knowing: our quantized caches **save memory, and lose time**. PyTorch has no attention that reads
# packed codes, so all codes are turned back into floats first, in every layer, at every token; then attention reads the
# floats. A fused kernel turns each code back in the moment when it is used (lesson 14). And at this length the weights are
# many times larger than any cache, so even a perfect kernel would gain little.

# %% [markdown]
# ## Third way: forget what is old
# A **sliding window** of w keeps the newest w tokens, and memory stops growing for good. Row p of attention sees j ≤ p where
# j > p − w. The fourth way comes along with it: leave the first few tokens, the **sinks**, in place. Play: which tokens does
# the last row see?

# %%
explore(plots.window_mask, tokens=(8, 32, 20), window=(1, 24, 6), sinks=(0, 6, 1))

# %% [markdown]
# How much can one token matter, that stood 500 tokens ago? The text has 768 tokens, the window 256. Once with the first
# token kept, once without it. Write down by how many percent perplexity rises **without** it.

# %%
predict("rise of perplexity, window 256 without the first token", 2, "%")

# %%
WINDOW = 256
windows = {"window, no sink": f"window:{WINDOW}", "window and 1 sink": f"window:{WINDOW}+1",
           "window and 4 sinks": f"window:{WINDOW}+4"}
scores = {name: perplexity(model, text, protocol, cache=spec) for name, spec in windows.items()}
scores = {"everything kept": whole, **scores}
rise = {name: score.value / whole.value - 1 for name, score in scores.items()}
for name, score in scores.items():
    print(f"{name:18} perplexity {score.value:6.2f}   {100 * rise[name]:+6.1f} %")
measured("rise of perplexity, window 256 without the first token", 100 * rise["window, no sink"])

# %%
def by_position(nll, bin=32):
    """Means of stretches of `bin` tokens."""
    return [part.mean().item() for part in nll.split(bin)]


plots.surprise_by_position({name: by_position(score.nll) for name, score in scores.items()}, bin=32, window=WINDOW)

# %% [markdown]
# A cliff. Up to position 256 the lines are one. Then the first token drops out of the window, and from there on the model
# is worse at nearly every place. Keep that *one* token, and the cliff is gone. What is left is the honest price of
# forgetting: a little more surprise. (The ups and downs that all lines share are the text's own.)
#
# Was the first token so full of meaning?

# %%
print("the first token:", repr(engine.tokenizer.decode(ids[:1])))
weights = seen.weights()[:, :, 32:, 0]            # of the queries from position 32 on: their weight on token 0
plots.sink_share(weights.mean((1, 2)).tolist())

# %% [markdown]
# It means next to nothing. But softmax weights must add up to one, so a head that finds nothing has to put its weight
# somewhere, and training taught it where: on the token that every other one can see. Take it away, and that weight lands on
# tokens that do mean something. (Xiao et al. 2023 named it the *attention sink*.)

# %% [markdown]
# ## All of it at 4K, 32K and a million tokens
# The sizes of Llama-3-8B, bfloat16, one request. "MHA" is what it would need if each of its 32 query heads had its own keys.
# The line is a card of 80 GB, on which the weights must find room as well.

# %%
# NBVAL_CHECK_OUTPUT
llama = MODELS["Llama-3-8B"].config
contexts = [4_096, 32_768, 1_048_576]
kinds = {"MHA, 32 heads": (32, "contiguous"), "GQA, 8 heads": (8, "contiguous"), "MQA, 1 head": (1, "contiguous"),
         "GQA, int8": (8, "int8"), "GQA, int4": (8, "int4"), "GQA, window 4096 + 4": (8, "window:4096+4")}
ways = {}
for name, (heads, spec) in kinds.items():
    cache = make_cache(spec, replace(llama, n_kv_heads=heads), torch.bfloat16, "cpu")
    ways[name] = [cache.bytes_for(n) for n in contexts]
    print(f"{name:21}" + "".join(f"{n_bytes / 1e9:9.2f} GB" for n_bytes in ways[name]))
print(f"{'the weights':21}{weight_bytes(llama) / 1e9:9.2f} GB")

# %%
plots.cache_memory(ways, contexts, memory=80e9)

# %% [markdown]
# Only one of them stops growing. The others divide by a number, and a million divided by four is still a lot: int4 with
# shared heads fits a million tokens on the card, beside the weights, for *one* reader. What a cache looks like that was
# designed to be small, you see in lesson 15; how many requests share what there is, in lesson 11.
#
# The article's statement, C16: "INT8 or INT4, a sliding window, shared heads and paging shrink or tame the cache".

# %%
rises = {spec: quality[spec][1] / 100 for spec in ("int8", "int4")}
rises |= {spec: rise[name] for name, spec in windows.items()}
sizes = {spec: make_cache(spec, model.config, model.dtype, "cpu").bytes_for(768) for spec in ["contiguous", *rises]}
shares = {spec: sizes[spec] / sizes["contiguous"] for spec in rises}
found = claim.judge(shares, rises, kv_bytes_per_token(MODELS["Llama-3-8B"]) / kv_bytes_per_token(MODELS["Llama-2-7B"]))
print(f"C16: {found.verdict}{': ' + found.why if found.why else ''}")
print(found.measured)

# %% [markdown]
# ## What you can now do
# - Compute the cache of any model with any number of key/value heads, bits and tokens.
# - Say why keys want to be quantized per channel and values per token, and why the newest tokens stay as they are.
# - Explain the cliff, and repair it with one token.
# - Tell saved memory from saved time.
#
# In the lab you write codes and their way back, a cache that keeps them, and a window with sinks. Both caches serve the real
# model: `llmcourse generate "…" --mine --cache int8`.
#
# **Out loud**
# 1. A window of 1,024 in every one of 30 layers: can the last token of a long text know anything of what stood 5,000 tokens
#    before it?
# 2. Why is a token that was written once never quantized a second time, with a better scale?
# 3. A colleague cuts the oldest half of a chat's cache away to save memory, and the model begins to babble. What do you ask
#    first?
#
# <details><summary>Answers</summary>
#
# 1. A little. In each layer it sees 1,024 tokens, but those carry what *they* saw in the layer below, 1,024 further back. In
#    principle 30 layers reach 30 windows far. In practice what is passed on gets thinner with each step. (And the sinks are
#    always in sight.)
# 2. The number itself is gone; only its code is left. Turned back and quantized again on another grid, it would be rounded a
#    second time. So a group must be complete before it is packed, or must never need to change.
# 3. Whether the first tokens went with the rest. And then, whether the keys that stayed kept the rotation of their own
#    positions.
#
# </details>
