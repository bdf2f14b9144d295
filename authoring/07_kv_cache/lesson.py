# %% [markdown]
# # 07 · Never compute it twice: the KV cache
# *2 hours with the lab. You need: lesson 03 (queries, keys, values) and lesson 06 (prefill and decode).*
#
# **The idea.** To choose token 51, attention needs the keys and values of tokens 1 to 50. They were computed when those
# tokens went through the model, and nothing about them has changed. So keep them.
#
# | letter or word | meaning | SmolLM2 |
# |---|---|---|
# | n | tokens in this step | |
# | T | tokens so far | grows |
# | L | layers | 30 |
# | Hq | query heads | 9 |
# | Hkv | key/value heads | 3 |
# | D | head size | 64 |
# | KV cache | the keys and values that are kept | |

# %%
from llmcourse import Engine
from llmcourse.batch import Batch, Piece
from llmcourse.cache import ContiguousCache
from llmcourse.measure.clock import median_time
from llmcourse.measure.known_models import MODELS
from llmcourse.measure.memory import (context_that_outgrows, kv_bytes, kv_bytes_per_token, requests_that_fit,
                                      weight_bytes)
from llmcourse.measure.steps import first_length, step_seconds, text_seconds
from llmcourse.workbook import explore, measured, plots, predict

import torch

engine = Engine()
model, tokenizer = engine.model, engine.tokenizer

# %% [markdown]
# ## What is done twice
# Three tokens, one head of size two. A key is a token's vector times a matrix. Compute the keys of "the cat", then those
# of "the cat sat". Check the last row by hand: (1, 1) picks the first row of the matrix and the second, and adds them.

# %%
# NBVAL_CHECK_OUTPUT
x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])   # the, cat, sat
W_k = torch.tensor([[2.0, 1.0], [0.0, 3.0]])
print("the cat    ", (x[:2] @ W_k).tolist())
print("the cat sat", (x @ W_k).tolist())

# %% [markdown]
# The first two rows are the same. They must be: each row of x meets the matrix alone. But this is one layer. In the next
# one, x itself is made of what attention found, so would "sat" not change what "cat" looks like there?
#
# No, because of the causal mask of lesson 03. "cat" never sees "sat", in no layer. So its vector is the same in all of
# them, and so are its key and its value. Look at the real model: the keys of a text's first tokens, when the text ends
# there, and when it goes on.

# %%
def keys_and_values(ids):
    """What all layers keep of a text: two tensors of shape [L, Hkv, T, D]."""
    cache = ContiguousCache(model.config, model.dtype, model.device, first_tokens=len(ids))
    cache.open(ids, len(ids))
    model.forward(Batch.of([Piece(ids)], device=model.device), cache, engine.parts)
    return cache.slots[0].keys, cache.slots[0].values


ids = tokenizer.encode("The train from the coast was late again, and nobody on the platform seemed to mind.")
short, long = keys_and_values(ids[:10])[0], keys_and_values(ids)[0]
print("keys of the first 10 tokens:", list(short.shape), f"numbers up to {short.abs().max():.0f}")
print(f"the text goes on for {len(ids) - 10} tokens: they differ by {(short - long[:, :, :10]).abs().max():.0e} at most")

# %% [markdown]
# That is rounding: sums taken in another order. The causal mask is the whole licence for the cache.
#
# Why keys and values, and not queries? A query is asked once, by its own token, at its own step. Keys and values are
# looked up by every token that comes later. And why not the attention weights? They belong to the query, and it is gone.

# %% [markdown]
# ## Step by step
# Write eight tokens, one a step. Without a cache, step 8 computes everything that step 7 did, and one token more.

# %%
plots.computed_and_kept(8)

# %% [markdown]
# The triangle has T · (T + 1) / 2 boxes, the diagonal has T. Quadratic becomes linear:

# %%
# NBVAL_CHECK_OUTPUT
for T in [10, 100, 1000, 10_000]:
    without = T * (T + 1) // 2
    print(f"{T:6,} tokens: {without:11,} computed without a cache, {T:6,} with one, {without / T:7.1f} times fewer")

# %% [markdown]
# (Attention still looks at all T tokens, so that part stays quadratic. It is a small part until texts become long: the
# work on a token's own weights is far more.)
#
# The article's words for the gain are "5× or more" on long generations. Does the machine agree with the boxes? First
# the most important thing: nothing may change in *what* is said. The engine can run without its cache.

# %%
prompt = "Once upon a time, in a small town by the sea,"
runs = {}
for kind in ["none", "contiguous"]:
    runs[kind] = Engine(model, cache=kind).generate(prompt, temperature=0, max_tokens=16, ignore_eos=True)
    print(f"cache = {kind:10} {sum(runs[kind].itl_s):5.2f} s after the first token: {runs[kind].text!r}")
print("the same ids:", runs["none"].output_ids == runs["contiguous"].output_ids)

# %% [markdown]
# ## Predict
# Now long texts. To choose the token that follows 512 others, a model without a cache reads 512 tokens. With one it
# reads a single token, and looks up the rest. How many times faster is that step **on your machine**? 512 times? Think of
# lesson 06, and write down a number.

# %%
predict("speed-up of the step at 512 tokens", 20, "×")

# %%
lengths = [16, 64, 128, 256, 512]      # for the patient: add 1024 and 2048
without = {n: step_seconds(model, n, cached=False, runs=2, warm_up=0) for n in lengths}

# %%
cached = {n: step_seconds(model, n, cached=True, runs=7) for n in lengths}
measured("speed-up of the step at 512 tokens", without[512] / cached[512])

# %%
plots.time_per_token(without, cached)

# %% [markdown]
# The upper line climbs with the text. The lower one stays nearly level: each step reads all weights once, and next to
# them the cache of a short text is nothing. And the gain is far from 512. Reading 512 tokens at once is cheap for each
# of them (prefill computes), while a single one must wait for all the weights (decode reads). The cache buys fewer
# operations, not fewer weights.
#
# So where does "5×" stand? There are two ways to read it. One: the *step* is five times faster. Two: the *whole text*,
# from its first token on, came five times sooner; that takes longer, since the early steps gained little.

# %%
step, whole = first_length(without, cached, 5), first_length(without, cached, 5, whole=True)
print("a step is 5 times faster from", f"{step:,} tokens on" if step else f"later than {lengths[-1]:,} tokens")
print("a whole text is so from", f"{whole:,} tokens on" if whole else f"later than {lengths[-1]:,} tokens")
gain = text_seconds(without, 512) / text_seconds(cached, 512)
verdict = "holds" if whole else "holds for single steps" if step else "does not hold here up to 512 tokens"
print(f"C13, 5 times faster or more on long generations: {verdict}; a text of 512 tokens came {gain:.0f} times faster")

# %% [markdown]
# "5×" is no property of the cache. It is a place on a curve that has no end: twice the text, about twice the gain.

# %% [markdown]
# ## How to keep it
# The first cache that everybody writes joins the new keys to the old ones (`torch.cat`), as the article does. That makes
# a new tensor and copies everything, for one token, in every layer. Reserving the room once and writing into it copies
# the one token. Here is one layer of a 13B model (40 heads of size 128), with 3,000 tokens in it.

# %%
kept, new, room = torch.randn(3000, 40, 128), torch.randn(1, 40, 128), torch.empty(4096, 40, 128)
joining = 1000 * median_time(lambda: torch.cat([kept, new]), runs=15)
writing = 1000 * median_time(lambda: room[3000:3001].copy_(new), runs=15)
print(f"joining {joining:.2f} ms, writing {writing:.4f} ms")
print(f"for keys and values in 40 layers: {80 * joining:,.0f} ms against {80 * writing:.2f} ms, for every token")

# %% [markdown]
# ## The price
# What is kept must live somewhere. For each token: two tensors (keys and values), in every layer, for every key/value
# head.
#
# $$\text{bytes per token} = 2 \cdot L \cdot H_{kv} \cdot D \cdot \text{bytes per number}$$
#
# With 16-bit numbers, for models that you may have heard of:

# %%
# NBVAL_CHECK_OUTPUT
print("                  2 ·  L · Hkv ·   D · bytes = per token      at 4,096 tokens")
for name in ["SmolLM2-135M", "Llama-3-8B", "Qwen3-8B", "Llama-2-7B", "Llama-2-13B", "Llama-3-70B"]:
    c = MODELS[name].config
    per_token = kv_bytes_per_token(c)
    print(f"{name:17} 2 · {c.n_layers:2} ·  {c.n_kv_heads:2} · {c.head_dim:3} ·     2 = "
          f"{per_token:9,.0f} bytes, {per_token * 4096 / 1e9:8.2f} GB")

# %% [markdown]
# The article says for a 13B model: about 1 MB per token, about 4 GB at 4K.

# %%
# NBVAL_CHECK_OUTPUT
per_token = kv_bytes_per_token(MODELS["Llama-2-13B"].config)
at_4k = kv_bytes(MODELS["Llama-2-13B"], 4096)
print(f"C14, about 1 MB per token: {per_token / 1e6:.2f} MB. About 4 GB at 4K: {at_4k / 1e9:.2f} GB at 4,096 tokens.")
near = 1.1 < 1e6 / per_token < 1.3 and 1.1 < 4e9 / at_4k < 1.3
print("    ", "holds with a correction: the right order of size, rounded up by about a fifth" if near else "does not hold")

# %% [markdown]
# Llama-3-8B pays a sixth of it, and Llama-3-70B, five times the model, less than half. They are newer, and let
# several query heads share one key/value head. How far one can go with that is lesson 08.

# %% [markdown]
# ## When the cache outgrows the weights
# The weights are there once, whatever happens. The cache grows with every token of every request. At some length both
# are the same size; beyond it most of the memory is cache. A step must read it all, too: at that
# length it reads twice the bytes, and decode, which waits for bytes, takes about twice as long.

# %%
# NBVAL_CHECK_OUTPUT
print("model              weights     one request    16 at once, each")
for name in ["SmolLM2-135M", "Llama-3-8B", "Llama-2-13B", "Llama-3-70B"]:
    alone, many = (context_that_outgrows(MODELS[name], batch) for batch in (1, 16))
    print(f"{name:14} {weight_bytes(MODELS[name]) / 1e9:8.2f} GB {alone:9,.0f} tokens {many:9,.0f} tokens")

# %% [markdown]
# And memory ends. On a card with 80 GB, what the weights leave is shared by the requests that run at once. Double their
# context, and half of them must wait.

# %%
plots.batch_that_fits(["Llama-2-13B", "Llama-3-8B"], [1024 * 2**i for i in range(6)], memory_gb=80)

# %%
# NBVAL_CHECK_OUTPUT
short, long = (requests_that_fit(MODELS["Llama-2-13B"], 80e9, context) for context in (4096, 8192))
print(f"C15, doubling the context starves the batch: {short} requests of 4,096 tokens fit, {long} of 8,192:",
      "holds" if long == short // 2 else "does not hold")

# %% [markdown]
# Since a step reads the weights once for all its requests (lesson 06), fewer requests at once is also less work done per
# second. Long contexts are paid for by everyone. (C23 and lesson 12 come back to this.)

# %% [markdown]
# ## Play
# Choose a model and move the sliders until the cache is larger than the weights; then until it fits into a laptop.
# Which of the four helps most?

# %%
def memory(model, context, batch, kv_bits):
    """The cache beside the weights."""
    return plots.kv_memory(model, context, batch, kv_bits)


explore(memory, model=["Llama-2-13B", "Llama-3-8B", "Llama-3-70B", "Qwen3-8B", "SmolLM2-135M", "Mistral-7B"],
        context=(1_024, 1_048_576, 4_096), batch=(1, 256, 1), kv_bits=[16, 8, 4])

# %% [markdown]
# The same arithmetic, line by line, for any model and from a terminal: `llmcourse memory --model Llama-2-13B --memory 80`.

# %% [markdown]
# ## What you can now do
# - Say why the second token is fast, and what licence the causal mask gives.
# - Compute the cache of any model on a napkin, and the length at which it outgrows the weights.
# - Say what a claim like "5× faster" needs beside it to mean anything.
#
# In the lab you build two caches, and the better one serves the real model inside the engine.
#
# **Out loud**
# 1. Why may we keep K and V, but never Q? What would break the cache if attention were not causal?
# 2. A colleague's cached model is right for the first new token and wrong from the second on. What did they forget?
# 3. The cache turned quadratic work into linear work, and yet a step at 512 tokens became far less than 512 times faster.
#    Where is the rest?
#
# <details><summary>Answers</summary>
#
# 1. A query is used once, in its own step. If earlier tokens saw later ones, their vectors, and so their keys and values,
#    would change with every new token: all would have to be computed again.
# 2. The position, most likely. The first new token comes from the prompt's own step. From the second on a token comes
#    alone, and must be told where it stands; or its key was never written.
# 3. Reading many tokens at once makes good use of the processor, reading one does not: it waits for the weights, all of
#    which must be read for one token as for 512.
#
# </details>
