# %% [markdown]
# # 04 · The whole forward pass
# *About 2 hours: 45 minutes for this page, 80 for the lab. You need: lesson 02 (embeddings, rotary positions) and lesson 03 (attention).*
#
# **The idea.** A token's vector is a running sum. Layer after layer reads it and adds something to it, and in the end
# the sum is compared with every token of the vocabulary. That is the whole model.
#
# | letter or word | meaning |
# |---|---|
# | n | tokens that go through the model in one step |
# | T | tokens so far, this step included |
# | d | width: how many numbers stand for one token inside the model |
# | L | layers |
# | f | feed-forward width |
# | V | vocabulary: how many different tokens there are |
# | Hq, Hkv, D | query heads, key/value heads, head size |
# | eps | what keeps a norm from dividing by zero |
# | residual stream | the vector that runs through all layers; each one adds to it |
# | RMSNorm | divide a vector by its root mean square, then scale each channel |
# | SwiGLU | the feed-forward network of today's models: three matrices, one of which is a gate |
# | logit lens | reading the residual stream in the middle of the model as if it were the end |

# %%
from dataclasses import replace

from llmcourse import load_model, load_tokenizer
from llmcourse.measure.anatomy import parameters_by_part, token_flops_by_part
from llmcourse.measure.known_models import MODELS
from llmcourse.model.llama import Llama
from llmcourse.ops import CPU
from llmcourse.text.corpus import speeches
from llmcourse.workbook import explore, measured, plots, predict

import torch
from torch.nn.functional import cross_entropy, gelu, silu

model = load_model(device="cpu", dtype="float32")   # float32: digits are compared below
tokenizer = load_tokenizer()
config, weights = model.config, model.weights
model

# %% [markdown]
# ## The plan
# You know the two ends: a row of the table for each token (lesson 02), and a score for each token of the vocabulary
# (lesson 00). Between them stand L layers, all built alike:
#
#     table ──▶ x ──┬─────────────────────⊕──┬────────────────────────⊕── … L times … ── norm ── head ──▶ logits
#                   └─ norm ── attention ─┘  └─ norm ── feed-forward ─┘
#
# Follow the straight line. Nothing ever replaces x: attention *adds* to it, the feed-forward network *adds* to it. The
# line is called the **residual stream**. What branches off reads a normed copy of it.

# %%
# NBVAL_CHECK_OUTPUT
d, f, eps = config.width, config.ffn_width, config.rms_eps
Hq, Hkv, D = config.n_heads, config.n_kv_heads, config.head_dim
print(f"d = {d}, L = {config.n_layers}, Hq = {Hq}, Hkv = {Hkv}, D = {D}, f = {f}, "
      f"V = {config.vocab_size:,}")

# %% [markdown]
# ## One layer, shape by shape
# What does a layer own? Two norms, and seven matrices. A matrix is written [out, in]: it takes rows of `in` numbers and
# gives rows of `out`.
#
# | matrix | shape | what it makes |
# |---|---|---|
# | W_q | [Hq · D, d] | the queries of all heads, end to end |
# | W_k, W_v | [Hkv · D, d] | keys and values: fewer heads, so fewer rows |
# | W_o | [d, Hq · D] | the *output matrix*: from what all heads found back to d numbers |
# | gate, up | [f, d] | the feed-forward network's wide middle |
# | down | [d, f] | and back |
#
# Here they are in our model, and then a layer in a dozen lines. You know every one of them from the lessons before; read
# the shapes on the right.

# %%
# NBVAL_CHECK_OUTPUT
first_layer = weights.layers[0]
for name in ("q", "k", "v", "o", "gate", "up", "down"):
    matrix = getattr(first_layer, name)
    print(f"{name:5} {list(matrix.shape)!s:12} {matrix.numel():9,} numbers")


# %%
def one_layer(x, w):
    """The stream [n, d] after one layer; w holds the layer's weights."""
    n = len(x)
    cos, sin = CPU.rope_angles(torch.arange(n), D, config.rope_theta)
    h = CPU.rms_norm(x, w.attn_norm, eps)                                   # [n, d]
    q = CPU.rope((h @ w.q.T).view(n, Hq, D), cos, sin).transpose(0, 1)      # [Hq, n, D]
    k = CPU.rope((h @ w.k.T).view(n, Hkv, D), cos, sin).transpose(0, 1)     # [Hkv, n, D]
    v = (h @ w.v.T).view(n, Hkv, D).transpose(0, 1)                         # [Hkv, n, D]
    k, v = (each.repeat_interleave(Hq // Hkv, 0) for each in (k, v))        # [Hq, n, D]
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    look = (q @ k.mT / D**0.5).masked_fill(later, -torch.inf).softmax(-1)   # [Hq, n, n]
    found = (look @ v).transpose(0, 1).reshape(n, Hq * D)                   # [n, Hq·D]
    x = x + found @ w.o.T                                                   # [n, d]
    h = CPU.rms_norm(x, w.mlp_norm, eps)
    return x + (silu(h @ w.gate.T) * (h @ w.up.T)) @ w.down.T               # [n, f] → [n, d]


# %% [markdown]
# The last line is the feed-forward network, which this lesson takes apart below. Are these lines right? We shall see in
# a moment, when we know what the engine's own stream looks like.
#
# ## Listen to the stream
# Each norm reads the stream, so we listen there. (The engine takes its stages from a table of functions; we wrap one
# of them and keep what it is given.)

# %%
def listen(ids):
    """The residual stream [2L + 1, n, d]: before each half of a layer, and at the end."""
    heard = []

    def wrap(stage, function):
        def call(*arguments):
            if stage == "rms_norm":
                heard.append(arguments[0])
            return function(*arguments)

        return call

    model(ids, parts=CPU.wrapped(wrap))
    return torch.stack(heard)


# %%
# NBVAL_CHECK_OUTPUT
ids = tokenizer.encode("The sun rises in the east and sets in the")
stream = listen(ids)
writes = stream[1:] - stream[:-1]     # attention, feed-forward, attention, feed-forward, …
print("the stream was heard", len(stream), "times; each time", list(stream[0].shape))
print("it begins as the table's rows:", torch.equal(stream[0], weights.embed[ids]))
gap = (stream[0] + writes.sum(0) - stream[-1]).abs().max() / stream[-1].abs().max()
print(f"and ends as those rows plus {len(writes)} writes:", bool(gap < 1e-5))
ours = one_layer(stream[0], first_layer)
same = torch.allclose(ours, stream[2], atol=1e-4)
print("our dozen lines give what the second layer reads:", same)

# %% [markdown]
# So the last vector is a sum with one term for each writer. Who writes how much? The *length* of a vector (the root of
# the sum of its squares) tells. On the left is the first token, on the right one in the middle of the sentence.

# %%
def lengths_at(position):
    """Lengths at one token: what attention and feed-forward write, and the stream itself."""
    written, row = writes[:, position].norm(dim=-1), stream[0::2, position].norm(dim=-1)
    return written[0::2].tolist(), written[1::2].tolist(), row.tolist()


names = tokenizer.tokens(ids)
plots.stream_writes({names[position]: lengths_at(position) for position in (0, 5)})

# %% [markdown]
# Two things to see. At an ordinary token both halves of a layer write, and the later layers write more. And at the
# **first token** something violent happens: one feed-forward network writes a vector that dwarfs all else.

# %%
# NBVAL_CHECK_OUTPUT
first = writes[1::2, 0].norm(dim=-1)
layer = first.argmax().item()
share = writes[2 * layer + 1, 0].square().sort(descending=True).values
times = first[layer] / stream[2 * layer + 1, 0].norm()
print(f"layer {layer} writes a vector {times:.0f} times as long as what was there")
print(f"its two largest numbers of {d} make {100 * share[:2].sum() / share.sum():.0f} % "
      "of its squared length")
length = stream[0::2, 0].norm(dim=-1)
print(f"the first token's row is {length.max():,.0f} long at most, {length[-1]:,.0f} last")

# %% [markdown]
# Such *massive activations* are no accident of this model; they were found in many, at the first token and in a few
# channels (Sun et al. 2024). Remember the attention sink of lesson 03, the token that heads look at when they have
# nothing to look for: the two go together. The last two layers take most of it away again.
#
# A stream whose rows differ so much in length would be hard to read. Hence the norm.

# %% [markdown]
# ## RMSNorm by hand
# Take four numbers. Their squares are 1, 49, 25, 25; the mean of those is 25; its root is 5. Divide by it, and the row
# has *size one*: the mean of its squares is 1. Then each channel is multiplied with a weight that training found.
#
# $$y_i = w_i \cdot \frac{x_i}{\sqrt{\frac{1}{d}\sum_j x_j^2 + \varepsilon}}$$

# %%
# NBVAL_CHECK_OUTPUT
x = torch.tensor([1.0, 7.0, -5.0, 5.0], dtype=torch.float64)
w = torch.tensor([1.0, 2.0, 1.0, 3.0], dtype=torch.float64)
rms = x.square().mean().sqrt()
print("rms:                 ", rms.item())
print("divided by it:       ", (x / rms).tolist())
print("times the weight:    ", (w * x / rms).tolist())
print("ten times x gives:   ", (w * (10 * x) / (10 * x).square().mean().sqrt()).tolist())

# %% [markdown]
# Ten times the input, the same output: a reader of the stream sees directions, not lengths. (The older *LayerNorm*
# also subtracts the mean of the row, here 2. RMSNorm leaves that out, and models learn as well.) The tiny ε under the
# root keeps a row of zeros from dividing by zero.
#
# On the real stream, before the feed-forward network of the layer after the eruption:

# %%
# NBVAL_CHECK_OUTPUT
before = stream[2 * layer + 3]
after = CPU.rms_norm(before, torch.ones(config.width), config.rms_eps)
for position in (0, 1, len(ids) - 1):
    sizes = [rows[position].square().mean().sqrt().item() for rows in (before, after)]
    print(f"{names[position]:8} size {sizes[0]:7.1f} before the norm, {sizes[1]:.3f} after it")

# %% [markdown]
# ## The feed-forward network
# Attention moves information between tokens. Then each token is worked on alone, by the *feed-forward network*. The
# [article that this course tests](../docs/claims.md) describes it as two layers: widen, apply a curve, narrow again
# ([C08](../docs/claims.md#c08)). Today's models do a little more:
#
# $$\text{down}\big(\,\text{silu}(\text{gate}(x)) \cdot \text{up}(x)\,\big)$$
#
# $$\text{silu}(a) = a \cdot \text{sigmoid}(a)$$
#
# Two matrices, gate and up, read the same x and widen it from d to f numbers. Where silu of the gate is near zero, the
# product is, too, whatever up says: channel by channel the gate decides how much of up passes. A third matrix, down,
# brings f back to d.

# %%
a = torch.linspace(-5, 5, 101)
plots.activations(a.tolist(), {"silu (here)": silu(a).tolist(), "ReLU": a.relu().tolist(),
                               "GELU": gelu(a).tolist()})

# %%
# NBVAL_CHECK_OUTPUT
print("  gate   silu(gate)    up   product")
for gate, up in [(-8.0, 5.0), (-1.0, 5.0), (0.0, 5.0), (1.0, 5.0), (8.0, 5.0), (8.0, -5.0)]:
    let = silu(torch.tensor(gate)).item()
    print(f"{gate:6.1f} {let:12.3f} {up:5.1f} {let * up:9.3f}")

# %% [markdown]
# How often is a gate closed in the real model? Count, over all layers, the channels that let less than a tenth pass.

# %%
# NBVAL_CHECK_OUTPUT
closed = []
for number, each in enumerate(weights.layers):
    h = CPU.rms_norm(stream[2 * number + 1], each.mlp_norm, config.rms_eps)
    closed.append((silu(h @ each.gate.T).abs() < 0.1).float().mean().item())
low, high = min(closed), max(closed)
print(f"nearly closed: {100 * sum(closed) / len(closed):.0f} % of all gates; "
      f"from {100 * low:.0f} % in layer {closed.index(low)} "
      f"to {100 * high:.0f} % in layer {closed.index(high)}")

# %% [markdown]
# Two layers, then, or three matrices? A network of two, four times as wide as the model, was the standard until about
# 2022. Count what the third one costs.

# %%
# NBVAL_CHECK_OUTPUT
print(f"two matrices, 4d wide: {2 * d * 4 * d:,} parameters")
print(f"SwiGLU, f = {f}:      {3 * d * f:,} parameters; f is {f / d:.3f} · d")
matrices = [name for name in ("gate", "up", "down") if hasattr(first_layer, name)]
verdict = ("holds" if len(matrices) == 2
           else f"holds with a correction: {len(matrices)} matrices")
print(f"C08, the feed-forward network is two layers: {verdict}")

# %% [markdown]
# Nothing: f was chosen so that both networks have the same number of parameters. That the gate is somewhat better at an
# equal number was found by trying (Shazeer 2020), and by many since.

# %% [markdown]
# ## Leave one out
# If layers only add, the stream survives the loss of one. Take out each layer in turn, and let the model read a page.

# %%
page = tokenizer.encode(speeches()["2026-Trump-1"])[:128]


def loss(one=model):
    """The model's surprise at a page of English: mean of −log p(next token), in nats."""
    return cross_entropy(one(page)[:-1], torch.tensor(page[1:])).item()


def left_out(number):
    """The model without one of its layers."""
    rest = [each for i, each in enumerate(weights.layers) if i != number]
    return Llama(config, replace(weights, layers=rest))


whole = loss()
losses = [loss(left_out(number)) for number in range(config.n_layers)]
plots.without_a_layer(losses, whole)

# %%
worse = [one - whole for one in losses]
needed = [i for i, one in enumerate(worse) if one > 1]
few = sorted(worse)
for name, more in [("the least missed", few[0]), ("the median layer", few[len(few) // 2])]:
    print(f"{name}: {more:+.2f} nats, a perplexity {2.718 ** more:.2f} times as large")
print(f"more than one nat: layers {needed}")

# %% [markdown]
# (*Perplexity* is e to the power of the loss: between how many tokens the model hesitates.) The model survives the loss of
# most layers, and pays for each: such a factor is what separates a model from a clearly worse one. The rest read on, since
# they add to a sum and do not need a certain term in it. A few are not optional. Compare them with the first picture: among
# them are the layers at both ends, and the one that writes the massive activation.

# %% [markdown]
# ## The whole model, against an outside oracle
# In the lab you write the forward pass yourself, in some twenty lines. The course's own is in
# `llmcourse/model/llama.py`. Is it right? Hugging Face's transformers reads the same files with its own code.

# %%
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

disable_progress_bar()
theirs = AutoModelForCausalLM.from_pretrained(model.source).float().eval()
with torch.inference_mode():
    want = theirs(torch.tensor([page])).logits[0]
ours = model(page)
print(f"{ours.numel():,} logits from {want.min():.1f} to {want.max():.1f}")
apart = (ours - want).abs()
print(f"largest difference {apart.max():.1e}, mean {apart.mean():.1e}")
print("the same best token at every position:", torch.equal(ours.argmax(-1), want.argmax(-1)))
del theirs

# %% [markdown]
# The same up to rounding: sums in another order end in other last digits. Two programs that agree in millions of numbers
# compute the same thing.
#
# Now a trap. Let us count the positions from 1 instead of 0, and then let the second half of the page begin at 0 again.

# %%
def with_positions(shift):
    """Logits of the page with other positions: shift(positions)."""
    def angles(positions, *settings):
        return CPU.rope_angles(shift(positions), *settings)

    return model(page, parts=replace(CPU, rope_angles=angles))


shifts = {"from 1": lambda p: p + 1, "half of them again from 0": lambda p: p % 64}
for name, shift in shifts.items():
    apart = (with_positions(shift) - ours).abs().max()
    print(f"positions {name}: largest difference {apart:.1e}")

# %% [markdown]
# The first is no mistake at all: only the *distance* between two tokens survives in q·k (lesson 02), and all distances
# stayed. The second is one. Keep the difference in mind for lesson 07, where a token counted wrongly *after* others were
# counted rightly is the classic bug of a cache.

# %% [markdown]
# ## The last row speaks
# The model gives logits after *every* token. The article says that the last position's logits give the next token
# ([C09](../docs/claims.md#c09)). What do the other rows give? Compare the best token of row i with the tokens around it.

# %%
best = ours.argmax(-1)
truth = torch.tensor(page)
hits = {}
for ahead in (-1, 0, 1, 2):
    rows = range(max(0, -ahead), len(page) - max(0, ahead))
    hits[ahead] = sum(best[i] == truth[i + ahead] for i in rows).item() / len(rows)
    print(f"row i names token i {ahead:+d} in {100 * hits[ahead]:3.0f} % of the positions")
shorter = (model(page[:50]) - ours[:50]).abs().max()
print(f"a text cut after 50 tokens has the same 50 rows, up to {shorter:.0e}")
holds = max(hits, key=hits.get) == 1 and shorter < 1e-3
print("C09, the last position's logits give the next token:",
      "holds" if holds else "does not hold here")

# %% [markdown]
# Every row is the forecast for the token right behind it. While a text is being *written* only the last row has
# something new to say. While it is *read*, in training or when a text is scored, all of them count: that is how the
# losses above were measured, in a single pass.

# %% [markdown]
# ## The logit lens
# The head can read any vector of d numbers, so let it read the stream early: after 0, 3, 6, … layers. What would the
# model say if it had to stop there? Read the picture from below; in the last column the answer forms.

# %%
@torch.inference_mode()
def lens(ids):
    """Probabilities [L + 1, n, V] of the next token after 0, 1, … L layers."""
    normed = CPU.rms_norm(listen(ids)[0::2], weights.norm, config.rms_eps)
    return (normed @ weights.head.T).softmax(-1)


def read_early(prompt, every=3):
    """The logit lens after every so many layers."""
    ids = tokenizer.encode(prompt)[:16]
    layers = list(range(0, config.n_layers + 1, every))
    top = lens(ids)[layers].max(-1)
    words = [tokenizer.tokens(row) for row in top.indices.tolist()]
    return plots.logit_lens(tokenizer.tokens(ids), layers, words, top.values.tolist())


explore(read_early, prompt="The sun rises in the east and sets in the", every=(1, 6, 3))

# %% [markdown]
# The lowest row repeats the token that was read: nothing has been added yet, and a row of the table is most like
# itself. (In one column it names a stranger. A dot product also rewards rows that are long.) Then come commas, spaces
# and full stops, the tokens that fit anywhere. Only near the top does the sentence win. Type one of your own, and set
# `every` to 1 to watch the last layers one by one.

# %%
questions = ["The sun rises in the east and sets in the", "The opposite of hot is",
             "The capital of France is"]
forming = {}
for question in questions:
    p = lens(tokenizer.encode(question))[:, -1]
    answer = p[-1].argmax().item()
    ranks = 1 + (p > p[:, answer, None]).sum(-1)
    forming[f"{question} … {tokenizer.tokens([answer])[0]}"] = ranks.tolist()
plots.answer_forming(forming, config.vocab_size)

# %% [markdown]
# Rank 1 is what the model would say; the picture shows how many tokens stood before the later answer. It comes late, from
# far behind, and then overtakes thousands within a few layers. That does not mean that the layers before did nothing: they prepare it in
# directions that the head cannot read yet. The lens shows what could be *said*, not all that is *known*.

# %% [markdown]
# ## Tied
# Why can the head compare at all? In this model it *is* the table of lesson 02, used backwards: the logit of a token is
# the dot product of its row with the normed stream.

# %%
# NBVAL_CHECK_OUTPUT
print("the head is the table itself:", weights.head is weights.embed)
spared = config.vocab_size * config.width
print(f"a head of its own would add {spared:,} parameters, "
      f"{100 * spared / config.n_params:.0f} % more")
big = MODELS["Llama-3-8B"].config
share = big.vocab_size * big.width / big.n_params
print(f"{big.name} has one, for {100 * share:.0f} % of its parameters")

# %% [markdown]
# The larger the model, the less the vocabulary weighs, and the more it pays to let reading and writing have tables of
# their own.

# %% [markdown]
# ## Where everything is
# **Predict.** Of all parameters of this model, how many percent are in the feed-forward networks? All that you need
# stands above: d, f, L, V, and the table of shapes. (The norms are too small to matter.)

# %%
predict("share of the feed-forward networks", ..., "%")

# %%
parameters = parameters_by_part(config)
measured("share of the feed-forward networks",
         100 * parameters["feed-forward"] / config.n_params)
for part, number in parameters.items():
    print(f"{part:22} {number:12,}   {100 * number / config.n_params:5.1f} %")

# %% [markdown]
# And the work? One new token costs two floating point operations (FLOPs) for each number of a matrix that it meets: a
# product and a sum. The table is only looked up. On top comes *looking back*: a score for each earlier token, and a
# share of its value; this part grows with the text. Move both controls: try other models, and longer texts.

# %%
def anatomy(model, tokens_before=1024):
    """The map of a model, from its config."""
    chosen = config if model == config.name else MODELS[model].config
    flops = token_flops_by_part(chosen, tokens_before)
    return plots.model_map(chosen.name, parameters_by_part(chosen), flops, tokens_before)


others = ["Llama-2-7B", "Llama-2-13B", "Llama-3-8B", "Llama-3-70B", "Qwen3-8B"]
explore(anatomy, model=[config.name, *others], tokens_before=(1, 131_072, 1_024))

# %% [markdown]
# In each layer the feed-forward network costs 2 · 3 · d · f operations, and looking back at T tokens 2 · 2 · Hq · D · T.
# The two are equal at T = 3 · d · f / (2 · Hq · D).

# %%
# NBVAL_CHECK_OUTPUT
for one in [config, MODELS["Llama-3-8B"].config, MODELS["Llama-3-70B"].config]:
    crossing = 3 * one.width * one.ffn_width / (2 * one.n_heads * one.head_dim)
    print(f"{one.name:22} looking back costs more than feed-forward "
          f"after {crossing:,.0f} tokens")

# %% [markdown]
# In a short text the feed-forward networks are the largest part of the work; in a long one looking back takes over, and
# the small model is overtaken first. (Whether operations are what one waits for at all is the question of lesson 06.)
#
# ### To read on
# - Nelson Elhage and others, [A Mathematical Framework for Transformer
#   Circuits](https://transformer-circuits.pub/2021/framework/index.html) (2021): the residual stream as a channel.
# - nostalgebraist, [interpreting GPT: the logit lens](https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru) (2020).
# - Noam Shazeer, [GLU Variants Improve Transformer](https://arxiv.org/abs/2002.05202) (2020): four pages; mind the last
#   sentence of the conclusion.
# - Mingjie Sun and others, [Massive Activations in Large Language Models](https://arxiv.org/abs/2402.17762) (2024).
#
# ## What you can now do
# - Draw the whole model on a napkin, and say who reads and who writes the stream.
# - Compute RMSNorm and SwiGLU by hand.
# - Read a model's mind early, and say what the logit lens does not show.
# - Count a model's parameters and the work of a token from its config.
#
# In the lab you write the norm, the feed-forward network, a layer and the forward pass; your logits must be the real
# model's. And you get a debugger for life.
#
# **Out loud**
# 1. A row of the stream is a hundred times longer than its neighbours. Why does that not disturb the layers that read
#    it?
# 2. A colleague's model counts positions from 1. Its logits are right. Is it a bug?
# 3. Before any layer the lens names the very token that was read. Would it, if the head were not tied?
# 4. A layer is left out, and the model hardly gets worse. Was the layer useless?
#
# <details><summary>Answers</summary>
#
# 1. They read a normed copy: the row divided by its own size. Only its direction reaches them. (What the long row
#    does hide is the *other* channels of the same row: after the division they are tiny.)
# 2. Not by itself: RoPE leaves only distances, and they are the same. It becomes one as soon as two pieces of a text
#    are counted differently.
# 3. There would be no reason for it. A tied head compares with the very row that stands in the stream; another matrix
#    was trained to name the token that *follows*.
# 4. No. First, "hardly" is not "not": look at the factors above. Others read what the layer writes, and for some texts it
#    matters more than for this page. It says that the model spreads its work, and that a sum is robust against one
#    missing term.
#
# </details>
