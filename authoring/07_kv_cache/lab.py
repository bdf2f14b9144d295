# %% [markdown]
# # Lab 07 · Build the cache
# Four exercises, about an hour. At the end your cache serves the real model, inside the engine.
#
# | letter | meaning |
# |---|---|
# | n | tokens in this step |
# | T | tokens so far, this step included |
# | L | layers |
# | Hkv | key/value heads |
# | D | head size |
# | V | vocabulary: how many different tokens there are |

# %%
from time import perf_counter

from llmcourse import Engine
from llmcourse.measure.known_models import MODELS
from llmcourse.workbook import check, hint, run_mine, your_code
from llmcourse.workbook.step_model import StepModel

import torch

# %% [markdown]
# ### 07.1 The first cache that everybody writes
# Keep the keys and values that you have, and join the new ones on. It is also the cache of the [article that this
# course tests](../docs/claims.md), and it is right: whatever you build after it can be compared with it.
#
# Every layer calls `update` once in every step, with the keys and values of its own n new tokens.
#
# *difficulty 1/5 · 10 minutes · unlocks: a cache to compare the next one with*

# %% ex="ConcatCache"
class ConcatCache:
    """Keys and values of every layer, joined together as they come.

    Args:
        n_layers: L, an int: layers are numbered 0 to L − 1.

    update(layer, k, v): takes this step's keys and values of one layer, and returns all that the
        layer has seen.
        layer: its number, an int.
        k, v: [n, Hkv, D] each, n ≥ 1: a prompt, or a part of one, or one token. They stay as they
            were. The caller may write other numbers into them afterwards.
        Returns (K, V), each [T, Hkv, D]: the oldest token first, T counting the new ones.

    Every layer counts for itself, and two caches know nothing of each other.

    Example: with one head of size 1, update(0, [[[1.]], [[2.]]], …) returns the keys 1, 2. Then
    update(0, [[[3.]]], …) returns 1, 2, 3, and update(1, [[[9.]]], …) only 9. (Tensors are written
    as lists here.)
    """

    ### BEGIN SOLUTION
    def __init__(self, n_layers: int):
        self.k, self.v = [None] * n_layers, [None] * n_layers

    def update(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        for kept, new in ((self.k, k), (self.v, v)):
            kept[layer] = new.clone() if kept[layer] is None else torch.cat([kept[layer], new])
        return self.k[layer], self.v[layer]
    ### END SOLUTION

# %% check="ConcatCache"
check("07.ConcatCache", ConcatCache=ConcatCache)

# %% [markdown]
# ### 07.2 A cache that does not grow by copying
# Joining copies everything that was kept, at every token, in every layer. Reserve the room once, and write into it.
#
# *difficulty 2/5 · 20 minutes · unlocks: the engine's cache*

# %% ex="PreallocatedCache"
class PreallocatedCache:
    """Keys and values of every layer, in memory that is reserved once.

    Args:
        n_layers, n_kv_heads, head_dim: L, Hkv and D of the model, ints.
        capacity: the most tokens that it can hold, an int.

    update(layer, k, v): as in `ConcatCache`: takes k, v of [n, Hkv, D], returns (K, V) of
        [T, Hkv, D]. But what comes back is the reserved memory itself, a view of its first T
        tokens, and no copy. Raises ValueError when the tokens do not fit; a cache that refuses
        stays as it was, and can go on with fewer.
        layer: its number, an int, 0 to L − 1.

    Every layer counts for itself, two caches know nothing of each other, and what was returned
    earlier stays as it was.

    Example: with capacity 4, one head of size 1, update(0, [[[1.]], [[2.]]], …) returns the keys
    1, 2; then update(0, [[[3.]]], …) returns 1, 2, 3, and update(1, [[[9.]]], …) only 9. Two more
    tokens for layer 0 do not fit: ValueError. One more does.
    """

    ### BEGIN SOLUTION
    def __init__(self, n_layers: int, n_kv_heads: int, head_dim: int, capacity: int):
        self.k = torch.empty(n_layers, capacity, n_kv_heads, head_dim)
        self.v = torch.empty_like(self.k)
        self.length = [0] * n_layers

    def update(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        start, stop = self.length[layer], self.length[layer] + k.shape[0]
        if stop > self.k.shape[1]:
            raise ValueError(f"{stop} tokens do not fit into a cache for {self.k.shape[1]}")
        self.k[layer, start:stop] = k
        self.v[layer, start:stop] = v
        self.length[layer] = stop
        return self.k[layer, :stop], self.v[layer, :stop]
    ### END SOLUTION

# %% check="PreallocatedCache"
check("07.PreallocatedCache", PreallocatedCache=PreallocatedCache)

# %% [markdown]
# The two must always agree. Race them: 3,000 tokens are there, 20 more come, one at a time. Sizes of one layer of
# Llama-2-13B (Hkv = 40, D = 128).

# %%
def race(cache, n_past=3_000, n_new=20):
    """Milliseconds that it takes to append one token, the mean of n_new; and the last K."""
    k = torch.randn(n_past + n_new, 40, 128, generator=torch.Generator().manual_seed(0))
    cache.update(0, k[:n_past], k[:n_past])
    start = perf_counter()
    for i in range(n_past, n_past + n_new):
        K, _ = cache.update(0, k[i : i + 1], k[i : i + 1])
    return 1000 * (perf_counter() - start) / n_new, K


with your_code():
    joined, K_joined = race(ConcatCache(1))
    written, K_written = race(PreallocatedCache(1, 40, 128, 3_020))
    print("the same keys:", torch.equal(K_joined, K_written))
    print(f"joining {joined:.2f} ms a token and layer, writing {written:.3f} ms: {joined / written:,.0f} times less")

# %% [markdown]
# ### 07.3 Generate with a cache
# Now the loop of lab 00, without its waste: the prompt goes through the model once, and after that only the newest
# token does.
#
# A token that comes alone must bring its position along: the model can no longer tell it from the length of the input.
#
# *difficulty 3/5 · 20 minutes · unlocks: nothing new in the engine; you need it to see what your cache saves*

# %% ex="generate_cached"
def generate_cached(model, ids: list[int], max_new: int) -> list[int]:
    """Greedy decoding that computes no token twice.

    Args:
        model: has two methods.
            model.new_cache(capacity) gives an empty cache for one text of at most `capacity`
            tokens. One that is too small raises ValueError later.
            model(ids, positions, cache) computes n new tokens: their ids [n], and the position of
            each in the text, [n] ints, the first of the text being 0. It writes their keys and
            values into the cache, looks up those of all earlier tokens there, and returns the
            logits after the last of them, a tensor [V].
        ids: the prompt, a list [n] of ints, n ≥ 1. It stays as it was.
        max_new: how many ids to generate, ≥ 0.

    Returns the new ids, a list of ints, without the prompt. The prompt goes through the model in
    one call, then each new token in one call of its own, the last one excepted: nobody asks what
    comes after it. With max_new = 0 the model is not called.

    Example: for a prompt of 3 tokens and max_new = 3 there are three calls, with the positions
    [0, 1, 2], then [3], then [4].
    """
    ### BEGIN SOLUTION
    cache = model.new_cache(len(ids) + max_new)
    new: list[int] = []
    pending, n_past = list(ids), 0
    while len(new) < max_new:
        positions = list(range(n_past, n_past + len(pending)))
        logits = model(pending, positions, cache)
        n_past += len(pending)
        new.append(int(logits.argmax()))
        pending = new[-1:]
    return new
    ### END SOLUTION

# %% check="generate_cached"
check("07.generate_cached", generate_cached=generate_cached)

# %% [markdown]
# ## Your loop, your cache, the real model
# `StepModel` shows SmolLM2 as the exercise does: `new_cache` makes one of *your* caches. It notes how many tokens each
# call brought (`fed`). The engine without any cache is the judge: the same ids, or something is wrong.

# %%
engine = Engine()
tokenizer = engine.tokenizer
ids = tokenizer.encode("The train from the coast was late again, and nobody on the platform")
judge = Engine(engine.model, cache="none").generate(ids, temperature=0, max_tokens=12, ignore_eos=True)


def told(name, model):
    """Run your loop on a model and say what it cost."""
    start = perf_counter()
    new = generate_cached(model, ids, 12)
    seconds = perf_counter() - start
    print(f"{name}: {tokenizer.decode(new)!r}")
    print(f"  tokens through the model: {model.fed}, {sum(model.fed)} in all, {seconds:.2f} s")
    print("  the same ids as without a cache:", new == judge.output_ids)


with your_code():
    told("PreallocatedCache", StepModel(engine.model, PreallocatedCache))
    told("ConcatCache", StepModel(engine.model, lambda L, Hkv, D, capacity: ConcatCache(L)))

# %%
lengths = range(len(ids), len(ids) + 12)
print(f"without a cache the same text takes {sum(lengths)} tokens through the model: {list(lengths)}")

# %% [markdown]
# ### 07.4 What it costs
# What is kept must live somewhere. Count it before you reserve it.
#
# *difficulty 1/5 · 5 minutes · unlocks: every memory budget from here on*

# %% ex="kv_bytes_per_token"
def kv_bytes_per_token(config, bytes_per_value: float) -> float:
    """Bytes that each token adds to the cache.

    Args:
        config: of a model. It has n_layers (L), n_heads (Hq), n_kv_heads (Hkv), head_dim (D) and
            width (d), all ints. D is its own number: it need not be d / Hq.
        bytes_per_value: of one number in the cache: 4 for float32, 2 for float16, 0.5 for int4.

    Returns the bytes of one token's keys and values, in all layers.

    Example: 2 layers, 3 key/value heads of size 5 and 2 bytes a number make 2 · 2 · 3 · 5 · 2 =
    120 bytes (the first 2 stands for keys and values).
    """
    ### BEGIN SOLUTION
    return 2 * config.n_layers * config.n_kv_heads * config.head_dim * bytes_per_value
    ### END SOLUTION

# %% check="kv_bytes_per_token"
check("07.kv_bytes_per_token", kv_bytes_per_token=kv_bytes_per_token)

# %% [markdown]
# Your formula on real models, and against what the engine's own cache says it holds.

# %%
with your_code():
    for name in ["SmolLM2-135M", "Llama-3-8B", "Qwen3-8B", "Llama-2-13B"]:
        print(f"{name:13} {kv_bytes_per_token(MODELS[name].config, 2):>9,.0f} bytes a token in 16 bits")
    mine = kv_bytes_per_token(engine.model.config, engine.model.dtype.itemsize)
    print("as the engine's cache counts its own:", mine == engine.cache.bytes_for(1))

# %% [markdown]
# ## Your cache in the engine
# **Save this notebook first.** The next cell reads it as a file, checks your answers, and runs the real model with
# every stage that passes. Look for the line `cache`: it was called once to begin with, and then once in each of the 30
# layers at every step.

# %%
result = run_mine("The capital of France is", folder=".", max_tokens=12)

# %% [markdown]
# The engine makes one of your caches for each request, so several can run at once. Its own cache
# (`llmcourse/cache/contiguous.py`) differs in two things: heads come before tokens, so that decode reads each head's
# keys in one go; and it reserves little at first and moves into twice the room when that is full, since most answers
# end long before their limit.
#
# Keys and values of every token, for ever: that is a lot to keep. **Lesson 08** keeps less.
