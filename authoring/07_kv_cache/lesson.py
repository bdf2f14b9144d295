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
from llmcourse.batch import Batch, Chunk
from llmcourse.cache import ContiguousCache
from llmcourse.claims import claims, kv_cache as article
from llmcourse.measure.clock import median_time
from llmcourse.measure.known_models import MODELS
from llmcourse.measure.memory import context_that_outgrows, kv_bytes_per_token, weight_bytes
from llmcourse.measure.steps import first_length, step_seconds
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
    model.forward(Batch.of([Chunk(ids)], device=model.device), cache, engine.parts)
    return cache.slots[0].keys, cache.slots[0].values


ids = tokenizer.encode("The train from the coast was late again, and nobody on the platform "
                       "seemed to mind.")
short, long = keys_and_values(ids[:10])[0], keys_and_values(ids)[0]
apart = (short - long[:, :, :10]).abs().max()
print("keys of the first 10 tokens:", list(short.shape),
      f"numbers up to {short.abs().max():.0f}")
print(f"the text goes on for {len(ids) - 10} tokens: they differ by {apart:.0e} at most")

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
# The triangle has T · (T + 1) / 2 boxes, the diagonal has T. Of the work on tokens, quadratic becomes linear. Attention
# has a second count: pairs of a token that looks and one that it sees. A step without a cache does the whole triangle of
# pairs again, so a whole text needs a sum of triangles, T · (T + 1) · (T + 2) / 6: cubic. With the cache each step adds one
# row of pairs, and all rows together are a single triangle: quadratic.

# %%
# NBVAL_CHECK_OUTPUT
print("            tokens computed              pairs that attention looks at")
print("  text    without     with               without             with")
for T in [10, 100, 1000, 10_000]:
    tokens, pairs = T * (T + 1) // 2, sum(t * (t + 1) // 2 for t in range(1, T + 1))
    print(f"{T:6,} {tokens:10,}   {T:6,} {pairs:21,} {tokens:16,}")

# %% [markdown]
# So everything loses one power of T. What the cache leaves is quadratic attention; it is a small part until texts become
# long, since the work on a token's own weights is far more.
#
# The [article that this course tests](../docs/claims.md) says that a cache makes long generations five times faster or more,
# its statement [C13](../docs/claims.md#c13). Does the machine agree with the boxes? First the most important thing: nothing
# may change in *what* is said. The engine can run without its cache.

# %%
prompt = "Once upon a time, in a small town by the sea,"
runs = {}
for kind in ["none", "contiguous"]:
    each = Engine(model, cache=kind)
    runs[kind] = each.generate(prompt, temperature=0, max_tokens=16, ignore_eos=True)
    print(f"cache = {kind:10} {sum(runs[kind].itl_s):5.2f} s after the first token: "
          f"{runs[kind].text!r}")
print("the same ids:", runs["none"].output_ids == runs["contiguous"].output_ids)

# %% [markdown]
# ## Predict
# Now long texts. To choose the token that follows 512 others, a model without a cache reads 512 tokens. With one it
# reads a single token, and looks up the rest. How many times faster is that step **on your machine**? 512 times? Think of
# lesson 06, and write down a number.

# %%
predict("speed-up of the step at 512 tokens", ..., "×")

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
step = first_length(without, cached, 5)
whole = first_length(without, cached, 5, whole=True)
end = f"later than {lengths[-1]:,} tokens"
print("a step is 5 times faster from", f"{step:,} tokens on" if step else end)
print("a whole text is so from", f"{whole:,} tokens on" if whole else end)
found = article.gain_of_the_cache(without, cached)
print(f"C13: {found.verdict}{': ' + found.why if found.why else ''}")

# %% [markdown]
# "5×" is no property of the cache. It is a place on a curve that has no end: twice the text, about twice the gain.

# %% [markdown]
# ## How to keep it
# The first cache that everybody writes joins the new keys to the old ones (`torch.cat`), as the article does. That makes
# a new tensor and copies everything, for one token, in every layer. It is not a beginner's mistake: the default cache of
# Hugging Face's transformers does it to this day, and is fast enough for short texts. Reserving the room once and writing
# into it copies the one token. One layer of a 13B model (40 heads of size 128) with 3,000 tokens in it, float32, on a
# processor; 16 bits on a graphics card move half the bytes through a memory that is many times faster.

# %%
kept, new = torch.randn(3000, 40, 128, device="cpu"), torch.randn(1, 40, 128, device="cpu")
room = torch.empty(4096, 40, 128, device="cpu")
joining = 1000 * median_time(lambda: torch.cat([kept, new]), runs=15)
writing = 1000 * median_time(lambda: room[3000:3001].copy_(new), runs=15)
print(f"joining {joining:.2f} ms, writing {writing:.4f} ms, float32 on the CPU")
print(f"for keys and values in 40 layers: {80 * joining:,.0f} ms against"
      f" {80 * writing:.2f} ms, for every token")

# %% [markdown]
# ## How long to keep it: a chat
# A request ends, its user reads, and asks again. The next prompt is the whole chat so far and one more line. What of its
# cache is still good? The licence says: everything up to the first token that differs. So there are three lives of a cache.
# **Reset**: throw it away after each answer, and read the whole chat at every turn. **Reuse**: keep it, and read what is
# new. **Rewind**: the user edits an earlier message; cut the cache back to where the texts part, and go on from there.

# %%
system = {"role": "system", "content": "You answer briefly."}
questions = ["Name a river in France.", "And one in Spain?", "Which of the two is longer?"]
answers = ["The Loire.", "The Ebro.", "The Loire, by a little."]
turns, chat = [], [system]
for question, answer in zip(questions, answers):
    chat = [*chat, {"role": "user", "content": question}]
    turns.append(tokenizer.chat(chat))
    chat = [*chat, {"role": "assistant", "content": answer}]
edited = [{**m, "content": "And one in Italy?"} if m["content"] == questions[1] else m
          for m in chat[:-1]]
turns.append(tokenizer.chat(edited))


def shared(before, now):
    """Tokens at the beginning that two texts have in common."""
    apart = (i for i, (a, b) in enumerate(zip(before, now)) if a != b)
    return next(apart, min(len(before), len(now)))


total = {"reset": 0, "kept": 0}
names = ["turn 1", "turn 2", "turn 3", "turn 2 edited"]
for name, before, now in zip(names, [[], *turns], turns):
    good = shared(before, now)
    total["reset"] += len(now)
    total["kept"] += len(now) - good
    print(f"{name:14} prompt of {len(now):3} tokens, {good:3} of them in the cache already")
print(f"read in all: {total['reset']} tokens with a reset after each turn,"
      f" {total['kept']} with reuse and rewind")

# %% [markdown]
# With every turn the saving grows: the prompts of a chat are quadratic in its turns, what is new is linear. (The answers
# are counted as read; the engine that wrote them has their keys as well, if the chat's text gives the same ids again.) A
# cache that only ever grows can reuse. To rewind it must be able to forget its *end*: set its length back. A quantized block
# or a sliding window cannot give back what it threw away (lesson 08). And who keeps caches between requests needs memory
# for users who may never return: lesson 11.

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
for name in ["SmolLM2-135M", "Llama-3-8B", "Qwen3-8B", "Llama-2-7B", "Llama-2-13B",
             "Llama-3-70B"]:
    c = MODELS[name].config
    per_token = kv_bytes_per_token(c)
    print(f"{name:17} 2 · {c.n_layers:2} ·  {c.n_kv_heads:2} · {c.head_dim:3} ·     2 = "
          f"{per_token:9,.0f} bytes, {per_token * 4096 / 1e9:8.2f} GB")

# %% [markdown]
# The article says for a 13B model: about 1 MB per token, about 4 GB at 4K, [C14](../docs/claims.md#c14).

# %%
# NBVAL_CHECK_OUTPUT
(claim,) = claims(["C14"])
print(claim.check())

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
    weights = weight_bytes(MODELS[name]) / 1e9
    print(f"{name:14} {weights:8.2f} GB {alone:9,.0f} tokens {many:9,.0f} tokens")

# %% [markdown]
# And memory ends. On a card with 80 GB, what the weights leave is shared by the requests that run at once. Double their
# context, and half of them must wait: the article's statement [C15](../docs/claims.md#c15).

# %%
contexts = [1024 * 2**i for i in range(6)]
plots.batch_that_fits(["Llama-2-13B", "Llama-3-8B"], contexts, memory_gb=80)

# %%
# NBVAL_CHECK_OUTPUT
(claim,) = claims(["C15"])
print(claim.check())

# %% [markdown]
# Since a step reads the weights once for all its requests (lesson 06), fewer requests at once is also less work done per
# second. Long contexts are paid for by everyone. (Lesson 12 comes back to this.)

# %% [markdown]
# ## Play
# Choose a model and move the sliders until the cache is larger than the weights; then until it fits into a laptop.
# Which of the four helps most?

# %%
def memory(model, context, batch, kv_bits):
    """The cache beside the weights."""
    return plots.kv_memory(model, context, batch, kv_bits)


KNOWN = ["Llama-2-13B", "Llama-3-8B", "Llama-3-70B", "Qwen3-8B", "SmolLM2-135M", "Mistral-7B"]
explore(memory, model=KNOWN, context=(1_024, 1_048_576, 4_096), batch=(1, 256, 1),
        kv_bits=[16, 8, 4])

# %% [markdown]
# The same arithmetic, line by line, for any model and from a terminal: `llmcourse memory --model Llama-2-13B --memory 80`.

# %% [markdown]
# ## What you can now do
# - Say why the second token is fast, and what licence the causal mask gives.
# - Say which power of T each count has, with the cache and without, and what a chat's next turn may reuse.
# - Compute the cache of any model on a napkin, and the length at which it outgrows the weights.
# - Say what a claim like "5× faster" needs beside it to mean anything.
#
# In the lab you build two caches, and the better one serves the real model inside the engine.
#
# **Out loud**
# 1. Why may we keep K and V, but never Q? What would break the cache if attention were not causal?
# 2. A colleague's cached model is right for the first new token and wrong from the second on. What did they forget?
# 3. The cache turned quadratic work on tokens into linear work, and yet a step at 512 tokens became far less than 512 times faster.
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

# %% [markdown]
# ## Further reading
# - Shazeer 2019, "Fast Transformer Decoding: One Write-Head is All You Need" (arXiv 1911.02150): why decoding waits for the
#   cache, counted, four years before everyone spoke of it.
# - Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with PagedAttention" (arXiv 2309.06180):
#   what reserving room costs a service; lesson 11.
# - "Best Practices for Generation with Cache" in the documentation of transformers: the kinds of caches that its users choose
#   among, and what each can take back.
