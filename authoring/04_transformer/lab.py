# %% [markdown]
# # Lab 04 · Build the model
# Four exercises, about an hour and a half. At the end your own forward pass gives the logits of the real model, and you
# have a tool that finds the first wrong number in any forward pass.
#
# | letter or word | meaning |
# |---|---|
# | n | tokens that go through the model in one step |
# | T | tokens so far; in this lab there is no cache, so T = n |
# | d | width: how many numbers stand for one token |
# | Hq, Hkv | query heads, key/value heads |
# | D | head size |
# | f | feed-forward width |
# | L | layers |
# | V | vocabulary: how many different tokens there are |
# | residual stream | what the layers read from and add to: one row of d numbers for each token |

# %%
from dataclasses import replace

from llmcourse import load_model, load_tokenizer
from llmcourse.given import apply_rope, generate_loop, grouped_attention, rope_angles
from llmcourse.workbook import check, compare_layers, from_earlier_labs, hint, run_mine, your_code

import torch

# %% [markdown]
# Attention and rotary positions are there already: `rope_angles` and `apply_rope` are lab 02's, `grouped_attention`
# is lab 03's. What is missing is everything around them.

# %% [markdown]
# ### 04.1 The norm
# Every layer reads the residual stream twice, and each time through a norm: divide a row by its own size, then scale
# each channel by a number that was learned.
#
# *difficulty 1/5 · 15 minutes · unlocks: the engine's norm*

# %% ex="rms_norm"
def rms_norm(x, weight, eps):
    """Each row divided by its root mean square, then scaled channel by channel.

        rms = √( mean of the squares of the row's d numbers + eps )

    Args:
        x: floats [..., d], any number of rows. It stays as it was.
        weight: floats [d], one factor for each channel, in the dtype of x.
        eps: a small number, added to the mean of the squares *inside* the root.

    Returns floats [..., d] in the dtype of x. The mean and the root are computed in float32 also
    where x is bfloat16 or float16: there a sum of squares would lose most of its digits, or
    overflow.

    Example: x = [[1., 7., -5., 5.]] has the mean square (1 + 49 + 25 + 25) / 4 = 25. With the
    weight [1., 2., 1., 3.] and eps = 0 the result is [[0.2, 2.8, -1.0, 3.0]].
    """
    ### BEGIN SOLUTION
    wide = x.float()
    mean_square = wide.square().mean(-1, keepdim=True)
    return weight * (wide / torch.sqrt(mean_square + eps)).to(x.dtype)
    ### END SOLUTION

# %% check="rms_norm"
check("04.rms_norm", rms_norm=rms_norm)

# %%
# NBVAL_CHECK_OUTPUT
with your_code():
    x = torch.tensor([[1.0, 7.0, -5.0, 5.0], [10.0, 70.0, -50.0, 50.0]])
    print(rms_norm(x, torch.tensor([1.0, 2.0, 1.0, 3.0]), eps=0.0))

# %% [markdown]
# The second row is ten times the first, and comes out the same. What the readers of the stream see is its direction,
# not its length.

# %% [markdown]
# ### 04.2 The feed-forward network
# Three matrices. Two of them read the same row; one decides how much of the other passes; the third writes back.
#
# *difficulty 2/5 · 15 minutes · unlocks: the engine's feed-forward network*

# %% ex="swiglu"
def swiglu(x, w_gate, w_up, w_down):
    """The feed-forward network of a Llama layer: down( silu(gate) · up ).

        gate = x · w_gateᵀ     up = x · w_upᵀ     silu(a) = a · sigmoid(a) = a / (1 + e^(−a))

    Args:
        x: floats [n, d].
        w_gate, w_up: floats [f, d]. Weights are stored output by input, so x meets them transposed.
        w_down: floats [d, f].

    Returns floats [n, d] in the dtype of x. silu is applied to the gate alone; then gate and up
    are multiplied number by number, and w_down brings the f products back to d.

    Example: with d = f = 1, x = [[2.]], w_gate = [[0.5]], w_up = [[3.]] and w_down = [[10.]] the
    gate is 1, silu(1) = 0.731, up is 6, and the result is 0.731 · 6 · 10 = [[43.86]].
    """
    ### BEGIN SOLUTION
    gate = x @ w_gate.T
    up = x @ w_up.T
    return (gate * torch.sigmoid(gate) * up) @ w_down.T
    ### END SOLUTION

# %% check="swiglu"
check("04.swiglu", swiglu=swiglu)

# %% [markdown]
# ### 04.3 One layer
# Now put the pieces around the residual stream. A layer *adds* to x, twice; what it adds was computed from a normed
# copy. (The norm comes first, hence the name pre-norm.)
#
#     x ──┬────────────────────────────────────────────────────────────⊕──┬──────────────────⊕──▶ x
#         └─ norm ── q, k, v ── turn q and k ── attention ── o ────────┘  └─ norm ── swiglu ─┘
#
# *difficulty 3/5 · 30 minutes · unlocks: `forward`, in exercise 04.4*

# %% ex="block"
def block(x, weights, cos, sin, config):
    """One pre-norm layer over a whole sequence, without a cache.

    Args:
        x: floats [n, d], the residual stream as it comes in. It stays as it was.
        weights: this layer's weights, by attribute:
            attn_norm, mlp_norm [d]: of the norms before attention and before the feed-forward network;
            q [Hq·D, d], k and v [Hkv·D, d], o [d, Hq·D]: of attention;
            gate, up [f, d], down [d, f]: of the feed-forward network.
        cos, sin: floats [n, D/2], of the angles at each token's position; for `apply_rope`.
        config: n_heads (Hq), n_kv_heads (Hkv), head_dim (D) and rms_eps are read from it.

    Returns floats [n, d], the residual stream as it goes out.

        h = rms_norm(x);  x = x + o( attention of the queries, keys and values made from h )
        h = rms_norm(x);  x = x + swiglu(h)

    The n·Hq·D numbers of q are viewed as [n, Hq, D], those of k and v as [n, Hkv, D]. Queries and
    keys are turned, values are not. `grouped_attention(q, k, v, n_past)` gives [n, Hq, D]; nothing
    is past here, so n_past is 0. Hq·D need not be d.

    Example: where o and down hold 0 only, nothing is added, and block returns x as it came:
    [[1., 2.]] gives [[1., 2.]], whatever the other weights are.
    """
    ### BEGIN SOLUTION
    n = x.shape[0]
    h = rms_norm(x, weights.attn_norm, config.rms_eps)
    q = (h @ weights.q.T).view(n, config.n_heads, config.head_dim)
    k = (h @ weights.k.T).view(n, config.n_kv_heads, config.head_dim)
    v = (h @ weights.v.T).view(n, config.n_kv_heads, config.head_dim)
    q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)
    mixed = grouped_attention(q, k, v, n_past=0)
    x = x + mixed.reshape(n, -1) @ weights.o.T
    h = rms_norm(x, weights.mlp_norm, config.rms_eps)
    return x + swiglu(h, weights.gate, weights.up, weights.down)
    ### END SOLUTION

# %% check="block"
check("04.block", block=block)

# %% [markdown]
# ### 04.4 The whole model
# Below the layers a table, above them one more norm and the vocabulary. That is all there is.
#
# *difficulty 2/5 · 20 minutes · unlocks: the model itself, at the end of this lab*

# %% ex="forward"
def forward(ids, weights, config):
    """The logits after every token of a text: the whole model, without a cache.

    Args:
        ids: a list [n] of ints, n ≥ 1, each from 0 to V − 1. It stays as it was.
        weights: the model's weights, by attribute:
            embed [V, d]: one row for each token;
            layers: a list of L layers' weights, first to last, each as `block` wants it;
            norm [d]: of the last norm;
            head [V, d]: the output matrix. Where config.tied is true, embed takes its place, whatever
            head holds.
        config: of the model: head_dim (D), rope_theta, rms_eps and tied are read from it, and what
            `block` reads.

    Returns floats [n, V]: row i scores what may follow token i.

    Look the rows up, compute the angles of positions 0 to n − 1 once (`rope_angles(positions,
    head_dim, theta)`, positions an int tensor), go through all layers, norm, and multiply with the
    head. Nothing is applied to the logits.

    Example: with no layer, d = 2, embed [[3., 4.], [0., 5.]], norm [1., 1.], eps 0, tied: id 0 has the
    row [3., 4.], its rms is 3.536, the normed row [0.849, 1.131], and its logits are
    [7.07, 5.66].
    """
    ### BEGIN SOLUTION
    x = weights.embed[ids]
    positions = torch.arange(len(ids), device=x.device)
    cos, sin = rope_angles(positions, config.head_dim, config.rope_theta)
    for layer in weights.layers:
        x = block(x, layer, cos, sin, config)
    head = weights.embed if config.tied else weights.head
    return rms_norm(x, weights.norm, config.rms_eps) @ head.T
    ### END SOLUTION

# %% check="forward"
check("04.forward", forward=forward)

# %% [markdown]
# ## Your forward pass and the real model
# `model.weights` and `model.config` have just the attributes that your functions read, so the real model needs no
# adapter. The oracle is Hugging Face's transformers, which reads the same folder with its own code.

# %%
model, tokenizer = load_model(device="cpu", dtype="float32"), load_tokenizer()
ids = tokenizer.encode("The residual stream is a river: every layer reads from it, and every layer adds to it.")
print(model, "·", len(ids), "tokens")

# %%
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

disable_progress_bar()
theirs = AutoModelForCausalLM.from_pretrained(model.source).float().eval()
with torch.inference_mode():
    want = theirs(torch.tensor([ids])).logits[0]
print("transformers' logits:", list(want.shape))

# %%
with your_code(), torch.inference_mode():
    mine = forward(ids, model.weights, model.config)
    error = (mine - want).abs()
    print(f"logits from {want.min():.1f} to {want.max():.1f}")
    print(f"largest difference from transformers {error.max():.1e}, mean {error.mean():.1e}")
    print("within the course's bound of 3e-4:", bool(error.max() <= 3e-4))
    print("the same best token at every position:", torch.equal(mine.argmax(-1), want.argmax(-1)))

# %% [markdown]
# Not equal to the last digit: sums in another order round differently. It is the difference between two right
# answers, some million times smaller than the logits themselves.
#
# ## It speaks
# Now the story so far, in one cell: lab 00's loop around lab 04's forward pass, with lab 02's positions and lab 03's
# attention inside. Where your own earlier answer passes its checks it takes the reference's place.

# %%
generate_loop, rope_angles, apply_rope, grouped_attention = from_earlier_labs(
    "00.generate_loop", "02.rope_angles", "02.apply_rope", "03.grouped_attention"
)

# %%
@torch.inference_mode()
def next_logits(ids):
    """Scores [V] for the token after ids, by your forward pass: the last row is the one that we want."""
    return forward(ids, model.weights, model.config)[-1].tolist()


with your_code():
    prompt = tokenizer.chat([{"role": "user", "content": "What is the capital of France?"}])
    answer = generate_loop(next_logits, prompt, max_new=12, stop_ids=set(tokenizer.eos_ids))
    print(tokenizer.decode(answer))

# %% [markdown]
# ## The debugger
# A forward pass with one wrong sign still gives logits, and text of a kind. Where is the mistake? `compare_layers`
# walks through the model stage by stage. Every stage of yours is given the *reference's* inputs, so an error cannot
# travel: the first stage that differs is the culprit. Your four functions first:

# %%
with your_code():
    compare_layers({"rms_norm": rms_norm, "swiglu": swiglu, "block": block, "forward": forward}, model, ids)

# %% [markdown]
# Now break something on purpose. Two popular slips: a GELU in the place of silu, and a layer that uses one norm
# for both halves. Neither raises, and both still give logits.

# %%
def gelu_swiglu(x, w_gate, w_up, w_down):
    """Wrong on purpose: GELU looks much like silu."""
    return (torch.nn.functional.gelu(x @ w_gate.T) * (x @ w_up.T)) @ w_down.T


compare_layers({"swiglu": gelu_swiglu}, model, ids)

# %%
def one_norm_block(x, weights, cos, sin, config):
    """Wrong on purpose: both halves use the norm of attention."""
    return block(x, replace(weights, mlp_norm=weights.attn_norm), cos, sin, config)


with your_code():
    compare_layers({"rms_norm": rms_norm, "swiglu": swiglu, "block": one_norm_block}, model, ids)

# %% [markdown]
# The norm and the feed-forward network are fine there, and the block is not: so look at how it joins them. When one
# day a model of your own talks nonsense, begin here.

# %% [markdown]
# ## Your norm and your feed-forward network in the engine
# **Save this notebook first.** The next cell reads it as a file, checks your answers, and runs the real model with
# every stage that passes.

# %%
result = run_mine("The capital of France is", folder=".", max_tokens=12)

# %% [markdown]
# Each layer norms twice, and the model once more at the end: count the calls. (The engine does not take your whole
# `forward`: it has a cache, and yours reads the text anew for every token. That is lesson 07.)
#
# Next: the logits are there. Which token shall it be? **Lesson 05.**
