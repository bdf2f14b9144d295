# %% [markdown]
# # Lab 03 · Build attention
# Five exercises, about eighty minutes. At the end your attention runs inside the real model, in every layer.
#
# | letter | meaning | in SmolLM2 |
# |---|---|---|
# | n | tokens in this step: each asks one query | 1 or many |
# | T | tokens so far: each has a key and a value | grows |
# | D | head size | 64 |
# | Hq | query heads | 9 |
# | Hkv | key/value heads | 3 |

# %%
import math

from llmcourse import Engine
from llmcourse.workbook import check, hint, run_mine, your_code
from llmcourse.workbook.attention_maps import watch_attention

import torch
from torch import Tensor
from jaxtyping import Bool, Float

# %% [markdown]
# ### 03.1 Softmax
# Scores become weights: positive, and a row adds up to 1. The formula has one line. On a computer it has two traps:
# `exp` of a number beyond 88 is infinite in float32, and a row in which nothing is allowed has nothing to divide by.
#
# *difficulty 2/5 · 10 minutes · unlocks: attention, in exercise 03.3*

# %% ex="softmax"
def softmax(x: Float[Tensor, "... T"]) -> Float[Tensor, "... T"]:
    """exp(x) divided by its sum, along the last axis.

    Args:
        x: scores [..., T], of any size, such as 10,000 or -10,000. Some may be -inf.

    Returns weights [..., T] of the same dtype: each row adds up to 1, and where x is -inf the weight
    is exactly 0. A row that is -inf throughout gives zeros throughout, not NaN: where nothing may be
    seen, nothing is seen.

    Example: softmax([0, ln 3]) is [0.25, 0.75], and so is softmax([1000, 1000 + ln 3]);
    softmax([-inf, 5]) is [0, 1]; softmax([-inf, -inf]) is [0, 0].
    """
    ### BEGIN SOLUTION
    top = x.amax(-1, keepdim=True)
    top = top.masked_fill(top == -math.inf, 0.0)
    powers = torch.exp(x - top)
    return powers / powers.sum(-1, keepdim=True).clamp(min=1.0)  # the largest term is 1: only an empty row has less
    ### END SOLUTION

# %% check="softmax"
check("03.softmax", softmax=softmax)

# %% [markdown]
# ### 03.2 The causal mask
# A token may look at itself and at what came before. With a cache the step's tokens are the *last* ones of the text:
# their first query already has a past. Masks that forget this are right for prompts, and wrong for every token after.
#
# *difficulty 2/5 · 10 minutes · unlocks: attention over a cache, in exercise 03.4*

# %% ex="causal_mask"
def causal_mask(n_query: int, n_key: int) -> Bool[Tensor, "n_query n_key"]:
    """Which key each query may see: True means that it may.

    Args:
        n_query: queries in this step, n ≥ 1.
        n_key: keys so far, T ≥ n. The queries stand at the last n of the T positions.

    Returns a bool tensor [n_query, n_key]. Query i stands at position T - n + i and sees the keys at
    position 0 to there, its own included. Raises ValueError when n_query is more than n_key.

    Example: causal_mask(2, 4) is [[True, True, True, False], [True, True, True, True]].
    """
    ### BEGIN SOLUTION
    if n_query > n_key:
        raise ValueError(f"{n_query} queries cannot be the last of {n_key} tokens")
    positions = torch.arange(n_key - n_query, n_key)
    return torch.arange(n_key) <= positions[:, None]
    ### END SOLUTION

# %% check="causal_mask"
check("03.causal_mask", causal_mask=causal_mask)

# %%
# NBVAL_CHECK_OUTPUT
with your_code():
    print("the whole text at once:\n", causal_mask(4, 4).int())
    print("the fifth token alone:\n", causal_mask(1, 5).int())

# %% [markdown]
# ### 03.3 One head
# Score, mask, softmax, mix. Four steps, one line each; the order is what matters.
#
# *difficulty 2/5 · 15 minutes · unlocks: all heads, in exercise 03.4*

# %% ex="attention"
def attention(
    q: Float[Tensor, "n D"], k: Float[Tensor, "T D"], v: Float[Tensor, "T D"],
    mask: Bool[Tensor, "n T"], scale: float,
) -> Float[Tensor, "n D"]:
    """For each query the mean of the values, weighted by how well their keys fit the query.

    Args:
        q: queries [n, D].
        k, v: keys and values [T, D].
        mask: bool [n, T]; True where query i may see key j.
        scale: every score q·k is multiplied by it; usually 1/√D.

    Returns [n, D]. A key that a query may not see has no influence on it, whatever its score. A query
    that may see nothing gets zeros.

    Example: with keys 0 and 0 every score is 0, the weights are 1/2 and 1/2, and values [4, 0] and
    [0, 2] give [2, 1]. If the mask hides the second key, they give [4, 0].
    """
    ### BEGIN SOLUTION
    scores = q @ k.T * scale
    return softmax(scores.masked_fill(~mask, -math.inf)) @ v
    ### END SOLUTION

# %% check="attention"
check("03.attention", attention=attention)

# %% [markdown]
# ### 03.4 Many heads, fewer keys
# The real thing: Hq heads look at the text independently, and Hq/Hkv of them share one head of keys and values. Heads
# that share are neighbours: with Hq = 4 and Hkv = 2, query heads 0 and 1 read key/value head 0, and 2 and 3 read 1.
#
# *difficulty 3/5 · 20 minutes · unlocks: the engine's attention*

# %% ex="grouped_attention"
def grouped_attention(
    q: Float[Tensor, "n Hq D"], k: Float[Tensor, "T Hkv D"], v: Float[Tensor, "T Hkv D"], n_past: int
) -> Float[Tensor, "n Hq D"]:
    """Causal attention of the last n tokens of a text over all its T tokens, in all heads.

    Args:
        q: queries [n, Hq, D] of this step's tokens.
        k, v: keys and values [T, Hkv, D] of all tokens so far, this step's included; Hkv divides Hq.
        n_past: tokens before this step; T = n_past + n.

    Returns [n, Hq, D]. Query head h reads key/value head h // (Hq / Hkv). Row i stands at position
    n_past + i and sees keys up to there. Scores are multiplied by 1/√D, with D the size of one head.

    Example: the first token of a text (n = 1, n_past = 0) sees only itself, so that its result is its
    own value: with v = [[[5.], [7.]]] (T = 1, Hkv = 2, D = 1) and Hq = 4 it is [[[5.], [5.], [7.], [7.]]].
    """
    ### BEGIN SOLUTION
    n, n_heads, head_size = q.shape
    group = n_heads // k.shape[1]
    mask = causal_mask(n, n_past + n)
    heads = [attention(q[:, h], k[:, h // group], v[:, h // group], mask, 1 / math.sqrt(head_size))
             for h in range(n_heads)]
    return torch.stack(heads, dim=1)
    ### END SOLUTION

# %% check="grouped_attention"
check("03.grouped_attention", grouped_attention=grouped_attention)

# %% [markdown]
# ### 03.5 Without the big matrix
# The same result, block by block: look at a few keys, keep a running maximum, a running sum and a running mix, and
# forget the scores. When a block brings a larger maximum, what you have is too large: shrink it. This recurrence is
# the heart of FlashAttention. It never holds the n × T scores.
#
# *difficulty 4/5 · 25 minutes · unlocks: nothing in the engine yet; fused attention kernels, in lab 14*

# %% ex="online_attention"
def online_attention(
    q: Float[Tensor, "n D"], k: Float[Tensor, "T D"], v: Float[Tensor, "T D"], block: int
) -> Float[Tensor, "n D"]:
    """Attention in one pass over the keys, `block` of them at a time, without a matrix of all scores.

    Args:
        q: queries [n, D]. Each may see all keys: there is no mask.
        k, v: keys and values [T, D], T ≥ 1.
        block: keys to look at in one go, ≥ 1. It need not divide T; the last block may be shorter.

    Returns [n, D], what `attention` gives with scale 1/√D and a mask that hides nothing. Scores may be
    large. What is kept from block to block does not grow with T: for each query the maximum so far,
    the sum of exp(score - maximum), and the values mixed with those weights.

    Example: D = 1, q = [[1.]], keys 0 and ln 3, values 4 and 8, block = 1. After the first key: maximum 0,
    sum 1, mix 4. The second raises the maximum to ln 3, so that sum and mix shrink to 1/3 and 4/3 before
    it adds 1 and 8. The result is (4/3 + 8) / (1/3 + 1) = 7.
    """
    ### BEGIN SOLUTION
    top = q.new_full((len(q), 1), -math.inf)
    total = q.new_zeros((len(q), 1))
    mix = torch.zeros_like(q)
    for start in range(0, len(k), block):
        scores = q @ k[start : start + block].T / math.sqrt(q.shape[1])
        new_top = torch.maximum(top, scores.amax(-1, keepdim=True))
        shrink = torch.exp(top - new_top)
        powers = torch.exp(scores - new_top)
        total = total * shrink + powers.sum(-1, keepdim=True)
        mix = mix * shrink + powers @ v[start : start + block]
        top = new_top
    return mix / total
    ### END SOLUTION

# %% check="online_attention"
check("03.online_attention", online_attention=online_attention)

# %% [markdown]
# ## Your attention on the real model's queries
# Random numbers are kind. These are the queries, keys and values that SmolLM2 makes of a sentence, in its 30 layers;
# some of their products are in the hundreds. Your two functions must agree, with each other and with the model.

# %%
engine = Engine()
sentence = "The keys to the old house were on the table, but nobody could find the door that they opened."
seen = watch_attention(engine.model, engine.tokenizer.encode(sentence))
print(f"queries [L, n, Hq, D]: {list(seen.q.shape)}, keys and values [L, n, Hkv, D]: {list(seen.k.shape)}")

# %%
with your_code():
    group = seen.q.shape[2] // seen.k.shape[2]
    grouped, online = [], []
    for q, k, v, out in zip(seen.q, seen.k, seen.v, seen.out):
        grouped.append((grouped_attention(q, k, v, n_past=0) - out).abs().max().item())
        for h in range(q.shape[1]):
            last = online_attention(q[-1:, h], k[:, h // group], v[:, h // group], block=7)
            online.append((last - out[-1, h]).abs().max().item())
    print(f"all tokens, all heads: differ from the model's own attention by at most {max(grouped):.1e}")
    print(f"the last token, online, in blocks of 7 keys:                   at most {max(online):.1e}")

# %% [markdown]
# ## Your attention in the engine
# **Save this notebook first.** The next cell reads it as a file, checks your answers, and runs the real model with
# every stage that passes. The prompt goes through your function in one piece; then it is called with n = 1 and a
# growing past, once for each layer and token.

# %%
result = run_mine("The capital of France is", folder=".", max_tokens=12)

# %% [markdown]
# That was your attention, in all 30 layers. The course's own does all heads in one multiplication
# (`llmcourse/ops/reference.py`, `grouped_attention`); read it, and find where it does what your loop over heads does.
#
# Next: what stands around attention in a layer, and why the whole is called a *transformer*. **Lesson 04.**
