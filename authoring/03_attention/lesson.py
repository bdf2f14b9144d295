# %% [markdown]
# # 03 · Tokens look at each other: attention
# *About 2 hours 10 minutes: 50 minutes for this page, 80 for the lab. You need: lesson 01 (tokens) and lesson 02
# (vectors, and RoPE, which turns them by position).*
#
# **The idea.** Each token asks a question (its query). Every token so far holds up a sign that says what it has to
# offer (its key). Where question and sign fit, the token takes what is behind the sign (the value). What it takes in
# the end is a mean of all values, weighted by how well they fit.
#
# | letter or word | meaning |
# |---|---|
# | n | tokens in this step: each asks one query |
# | T | tokens so far: each has a key and a value |
# | d | width: how many numbers stand for one token |
# | Hq, Hkv | query heads, key/value heads |
# | D | head size: how many numbers a query, a key or a value has |
# | L | layers |
# | query, key, value | what a token looks for, what it offers to be found by, what it gives when found |
# | softmax | turns scores into weights: all positive, and they add up to 1 |
# | entropy | how undecided the weights are; 0 bits where one token gets all |

# %%
import math
from dataclasses import replace
from functools import lru_cache

from llmcourse import Engine
from llmcourse.ops import default_parts
from llmcourse.text.corpus import speeches
from llmcourse.workbook import explore, measured, plots, predict
from llmcourse.workbook.attention_maps import watch_attention

import torch
import torch.nn.functional as F

engine = Engine()
model, tokenizer, config = engine.model, engine.tokenizer, engine.model.config
print(f"L = {config.n_layers}, d = {config.width}, D = {config.head_dim}, "
      f"Hq = {config.n_heads}, Hkv = {config.n_kv_heads}")

# %% [markdown]
# ## Why look at all?
# A token's row in the table of lesson 02 knows nothing of its neighbours. "bank" has the same vector beside a river
# as beside money. Somewhere in the model it must learn where it stands. Attention is the only place where one token can
# hear of another; everything else in the model works on each token alone.

# %% [markdown]
# ## By hand: three tokens
# Take three tokens, *cat*, *sat* and *it*, with vectors that are simple enough for a napkin: one number says "I am a
# noun", one "a verb", one "a pronoun". Three small matrices turn each vector into a query, a key and a value of D = 2
# numbers. Follow the row of *it*: it asks for nouns, loudly.

# %%
# NBVAL_CHECK_OUTPUT
tokens = ["cat", "sat", "it"]
x = torch.eye(3)                                            # noun, verb, pronoun
W_q = torch.tensor([[0.0, 2.0], [2.0, 0.0], [4.0, 0.0]])    # a noun wants verbs, others nouns
W_k = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])    # a noun says noun, a verb verb
W_v = torch.tensor([[10.0, 0.0], [0.0, 10.0], [1.0, 1.0]])  # what each of them has to give
q, k, v = x @ W_q, x @ W_k, x @ W_v
print("the query of it:", q[2].tolist())
print("the keys:       ", k.tolist())

# %% [markdown]
# How well does a key fit a query? Multiply them number by number and add up: the dot product. It is large where both
# are large in the same places.

# %%
# NBVAL_CHECK_OUTPUT
products = q @ k.T
print(products)

# %% [markdown]
# Row *it* reads 4, 0, 0: *cat* fits, the others do not. Now divide by √D (the next section says why), and take
# softmax: exp of each, divided by their sum. Then a row adds up to 1.

# %%
# NBVAL_CHECK_OUTPUT
powers = torch.exp(products / math.sqrt(2))
weights = powers / powers.sum(-1, keepdim=True)
shown = [round(power, 2) for power in powers[2].tolist()]
print(shown, "divided by", round(powers[2].sum().item(), 2))

# %%
plots.attention_map(weights, tokens, "Three tokens")

# %% [markdown]
# Each row is a token that looks. The last step mixes the values with these weights. The result of *it* is nearly what
# *cat* had to give: the pronoun now carries its noun. That is all of attention: four lines.

# %%
# NBVAL_CHECK_OUTPUT
mixed = weights @ v
print("the value of cat:", v[0].tolist())
print("the result of it:", [round(number, 2) for number in mixed[2].tolist()])

# %% [markdown]
# ## Why divide by √D?
# A dot product of D numbers is a sum of D terms. The more terms, the farther the sum strays from 0. Draw queries and
# keys at random, every number with spread 1 (*spread* is the standard deviation), and see how far.

# %%
# NBVAL_CHECK_OUTPUT
generator = torch.Generator().manual_seed(3)
for D in (4, 16, 64, 256):
    drawn_q, drawn_k = torch.randn(2, 20_000, D, generator=generator)
    spread = (drawn_q * drawn_k).sum(-1).std().item()
    print(f"D = {D:3}: the products spread by {spread:5.1f}, and √D = {math.sqrt(D):4.0f}")

# %% [markdown]
# The spread *is* √D. (Each of the D terms has spread 1. Of independent terms the *squares* of the spreads add up, here
# to D.) So dividing by √D brings it back to 1, for heads of any size. Softmax cares: it looks at differences, and one
# score that is larger by 8 gets e⁸ times the weight, thousands of times as much. The
# [article that this course tests](../docs/claims.md) divides by something else, the root of the *hidden* dimension, the
# width d of the whole model ([C07](../docs/claims.md#c07)). Here is what each makes of one query and 32 keys, drawn at
# random: the weights, largest first, averaged over many draws.

# %%
by_head, by_width = math.sqrt(config.head_dim), math.sqrt(config.width)
divisors = {"not divided": 1.0, f"√D = {by_head:.0f}, head": by_head,
            f"√d = {by_width:.0f}, width": by_width}
drawn_q = torch.randn(2_000, 1, config.head_dim, generator=generator)
drawn_k = torch.randn(2_000, 32, config.head_dim, generator=generator)
random_products = (drawn_q * drawn_k).sum(-1)
plots.sorted_weights({
    label: (random_products / by).softmax(-1).sort(descending=True).values.mean(0).tolist()
    for label, by in divisors.items()
})

# %% [markdown]
# Undivided, one score stands so far out that softmax gives it nearly everything. Divided by √d, all weights come close
# to the dotted line, where they are equal: every token listens to everybody. (Mind the letters: D is one head, d is the
# whole width.)
#
# Those were random numbers. What about the real queries and keys? `watch_attention` runs the model over a text and
# keeps what its attention sees. Entropy tells how many tokens a row of weights is spread over: 0 bits is one token, 1
# bit two, 2 bits four.

# %%
page = tokenizer.encode(speeches()["2026-Trump-1"])[:192]
n = len(page)
seen = watch_attention(model, page)


def entropy(scale):
    """Bits [L]: the mean over a layer's heads and over the second half of the text."""
    weights = seen.weights(scale)[:, :, n // 2 :]
    return -(weights * weights.clamp(min=1e-30).log2()).sum(-1).mean((1, 2))


bits = {label: entropy(1 / by).tolist() for label, by in divisors.items()}
even = sum(math.log2(i + 1) for i in range(n // 2, n)) / (n - n // 2)
plots.entropies(bits, even)

# %% [markdown]
# The same order in every layer. Divided by √d, attention comes close to the grey level, where all tokens get the same
# weight and looking is pointless. Undivided, it stares at a single token.
#
# **Predict.** How much does it matter? *Perplexity* says how unsure the model is of the next token: 10 means as unsure
# as between 10 equally likely ones. With √D the page above has the perplexity that the next cell prints. What will it
# be when every layer divides by √d instead?

# %%
@lru_cache
def perplexity(divisor):
    """Perplexity of the page when all scores are divided by this number."""
    logprobs = watch_attention(model, page, scale=1 / divisor).logits.log_softmax(-1)
    return math.exp(-logprobs[range(n - 1), page[1:]].mean())


print(f"perplexity with √D: {perplexity(by_head):.1f}")
predict("perplexity with √d", ...)

# %%
for label, by in divisors.items():
    print(f"{label:14} perplexity {perplexity(by):6.1f}")
measured("perplexity with √d", perplexity(by_width))
corrected = perplexity(by_head) < perplexity(by_width)
print("C07, scores are divided by √hidden:",
      "holds with a correction: by √D, the head's size" if corrected else "holds")

# %% [markdown]
# A fair word. A model learns its weights *for* its divisor, so any other one hurts it, and one trained with √d could
# have grown larger queries in exchange. The real products do not spread by √D either; training made them wider. The
# argument from random numbers is about the beginning of training: with √D it starts in the range where softmax can
# still learn. For the weights that we have, there is no choice: it is √D.

# %%
finite = seen.products()[seen.products() > -math.inf]
print(f"products of the trained model: spread {finite.std():.0f}, largest {finite.max():.0f}, "
      f"smallest {finite.min():.0f}")

# %% [markdown]
# ## Only the past: the causal mask
# The model learns to predict what comes next. If a token could look at its successor, it would only have to copy. So
# every token sees itself and what came before. What it may not see gets the score −∞ *before* softmax, and exp(−∞) = 0.

# %%
may_see = torch.ones(3, 3, dtype=torch.bool).tril()
masked = (products / math.sqrt(2)).masked_fill(~may_see, -math.inf)
plots.attention_map(masked.softmax(-1), tokens, "With the causal mask")

# %% [markdown]
# *cat* has nobody to look at but itself. *sat* no longer sees *it*, and its other weights have grown: the row still
# adds up to 1. That is why the mask comes before softmax. Setting weights to 0 afterwards leaves rows that do not.
#
# The mask has a consequence that carries half of this course: **what comes later changes nothing earlier.** Replace
# the last token of the page and compare the logits of all positions before it.

# %%
other = watch_attention(model, [*page[:-1], tokenizer.encode(" banana")[0]])
change = (other.logits - seen.logits).abs().amax(-1)
print(f"largest change before the last token: {change[:-1].max():.1e}, "
      f"at the last token: {change[-1]:.1f}")

# %% [markdown]
# Nothing (on some machines a last digit, from rounding). So the keys and values of old tokens can be kept, and when a
# new token comes, only its own query is computed: one query, T keys. Then the single row of the mask belongs to the
# *last* position, and sees everything. Here is a trap that has caught many: PyTorch's own attention counts its mask
# from key 0.

# %%
layer_q, layer_k, layer_v = (each[5, :, 0][None] for each in (seen.q, seen.k, seen.v))
one = layer_q[:, -1:]
right = F.scaled_dot_product_attention(one, layer_k, layer_v)
trap = F.scaled_dot_product_attention(one, layer_k, layer_v, is_causal=True)
theirs = seen.out[5, -1, 0]
print(f"all keys:        differs from the model by {(right[0, 0] - theirs).abs().max():.1e}")
print(f"is_causal=True:  differs from the model by {(trap[0, 0] - theirs).abs().max():.1e}")
print("what it returned is the value of key 0:", torch.equal(trap[0, 0], layer_v[0, 0]))

# %% [markdown]
# ## Many heads
# One mean of values is a poor catch: a verb may want its subject *and* its tense. So attention happens Hq times side by
# side, each time with D numbers of its own. These are the heads; their results are put end to end, Hq · D numbers, and
# one more matrix, the **output matrix** W_o, mixes them and brings them back to d numbers. (Lesson 04 walks through it,
# shape by shape.)
#
# Keys and values must be kept for all tokens, and that is memory. The cheap trick of today's models: several query
# heads share one head of keys and values. With one for each it is called MHA (multi-head attention), with one for all
# MQA (multi-query), in between GQA (grouped-query). Ours is in the middle.

# %%
plots.shared_heads(config.n_heads, {
    "MHA: one for each": config.n_heads, "GQA, as in SmolLM2": config.n_kv_heads,
    "MQA: one for all": 1,
})

# %% [markdown]
# Mind the order: neighbours share. Query heads 0, 1, 2 read key/value head 0. To multiply without a loop, each
# key/value head is repeated in place, 0 0 0 1 1 1 2 2 2 (`repeat_interleave`). Repeating the whole row, 0 1 2 0 1 2 0
# 1 2 (`repeat`), has the same shape, raises no error, and gives most heads the keys of another.
#
# What does sharing save?

# %%
# NBVAL_CHECK_OUTPUT
for name, n_kv in {"MHA": config.n_heads, "GQA": config.n_kv_heads, "MQA": 1}.items():
    kept = 2 * config.n_layers * n_kv * config.head_dim      # numbers in K and V
    learned = config.width * kept                            # numbers in W_k and W_v
    print(f"{name}, Hkv = {n_kv}: {2 * kept / 1024:5.1f} KiB for each token, in 16 bits; "
          f"{learned / 1e6:4.1f} M parameters for keys and values")

# %% [markdown]
# Our model keeps a third of what it would keep with MHA, for every token, as long as the text lives. Lesson 08 asks
# what sharing costs in quality.

# %% [markdown]
# ## All heads of a real model
# Now look at everything at once: every layer from left to right, every head from top to bottom. Each tile is one map
# like the ones above.

# %%
sentence = "The cat sat on the mat because it was tired."
ids = tokenizer.encode(sentence)
maps = watch_attention(model, ids).weights()
plots.all_heads(maps)

# %% [markdown]
# Patterns stand out. Some tiles have a dark diagonal: a head that looks at the token itself. A few have their dark line
# just below it: a head that looks at the token before. And very many have a dark left edge: heads that look at the first token, from wherever they are. (In layers 3 to 9 there
# is a second dark column; we come back to it.) A pattern that one sees in a picture is a guess; let us measure it, for
# every head, on the page of 192 tokens.

# %% [markdown]
# **Predict.** Take all heads of all layers together. What share of all attention goes to the very first token of the
# page? If everybody looked everywhere alike, it would be a few percent.

# %%
predict("attention on the first token", ..., "%")

# %%
page_weights = seen.weights()
later = torch.arange(1, n)
previous = page_weights[:, :, later, later - 1].mean(-1)     # [L, Hq]
first = page_weights[:, :, 1:, 0].mean(-1)
measured("attention on the first token", 100 * first.mean().item())
print(f"alike for all, it would be {100 * (1 / (later + 1)).mean():.0f} %")

# %%
plots.head_scores({"Weight on the token before": previous,
                   "Weight on the first token": first})

# %% [markdown]
# ### A head that looks at the token before
# The head that is framed in the upper grid has a job. Does it know the words, or only the place? Give it tokens drawn
# at random, where nothing means anything.

# %%
layer, head = divmod(int(previous.argmax()), config.n_heads)
noise = torch.randint(100, config.vocab_size, (n,), generator=generator).tolist()
on_noise = watch_attention(model, noise).weights()[layer, head][later, later - 1].mean()
print(f"layer {layer}, head {head}: {previous[layer, head]:.0%} of its weight on the token "
      f"before, {on_noise:.0%} on random tokens")
plots.attention_map(maps[layer, head], tokenizer.tokens(ids),
                    f"Layer {layer}, head {head}: the token before")

# %% [markdown]
# It looks at the place, whatever stands there; RoPE (lesson 02) lets it, since it turns queries and keys so that only
# the distance counts.
#
# ### Heads that ask "what followed the last time?"
# Such heads are half of a famous trick. If every token knows its predecessor, then a later head can look for a place
# whose *predecessor* is the present token, and copy what stands there. To see it work, give the model what no knowledge
# of language can help with: random tokens, and then the same ones again. How surprised is it at each? (Surprise is −log
# of the probability that it gave to the token, in nats.)

# %%
HALF, N_TEXTS = 48, 6
drawn = torch.randint(100, config.vocab_size, (N_TEXTS, HALF), generator=generator)
twice = [[*row, *row] for row in drawn.tolist()]


def surprise(ids, logits):
    """−log p of each next token of a text, in nats."""
    return -logits[:-1].log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None]).flatten()


watched = [watch_attention(model, ids) for ids in twice]
losses = torch.stack([surprise(ids, one.logits) for ids, one in zip(twice, watched)]).mean(0)
blind = math.log(config.vocab_size)
plots.repeated_loss(losses.tolist(), HALF, blind)

# %% [markdown]
# The first time it is worse than blind guessing, since it expects English. Then the text begins to repeat, and the model
# *notices*: nobody trained it on this text, it learned the text by reading it once. Who does that? Score every head:
# how much does it look from a token at what followed the same token before?

# %%
def what_followed(ids, weights):
    """For every head: its mean weight on the token that followed the last time. [L, Hq]"""
    last, found = {}, []
    for i, token in enumerate(ids):
        if token in last:
            found.append(weights[:, :, i, last[token] + 1])
        last[token] = i
    return torch.stack(found).mean(0)


induction = torch.stack([what_followed(ids, one.weights())
                         for ids, one in zip(twice, watched)]).mean(0)
order = induction.flatten().argsort(descending=True).tolist()
best = [divmod(place, config.n_heads) for place in order[:6]]
for layer, head in best[:3]:
    print(f"layer {layer}, head {head}: {induction[layer, head]:.0%} of its weight")
plots.head_scores({"Weight on what followed the last time": induction})

# %% [markdown]
# These are **induction heads** (Olsson and others, 2022). Do they do it, or do they only look? Silence them, set what
# they give to zero, and for comparison as many other heads of the same layers.

# %%
def silenced(ids, heads):
    """Mean surprise in the second half of a text when some (layer, head) give nothing."""
    parts, layer = default_parts(model.device.type), iter(range(config.n_layers))

    def attend(q, kv, batch, scale):
        out, now = parts.attend(q, kv, batch, scale).clone(), next(layer)
        for where, head in heads:
            if where == now:
                out[:, head] = 0
        return out

    return surprise(ids, model(ids, replace(parts, attend=attend)))[HALF:].mean().item()


others = []
for layer, head in best:
    others.append((layer, next(h for h in reversed(range(config.n_heads))
                               if (layer, h) not in best + others)))
for name, heads in {"all heads": [], f"without those {len(best)}": best,
                    f"without {len(best)} others": others}.items():
    print(f"{name:16} {sum(silenced(ids, heads) for ids in twice) / N_TEXTS:5.1f} nats")

# %% [markdown]
# It is their work. A model that can copy what it has just read can take up a name, a format, an example from its prompt:
# induction heads are a first piece of what is called learning from the context.
#
# ### The sink
# And the first token? Is it so important? Put other tokens in its place, and see whether they are looked at as much.

# %%
for start in ["The", "\n", " zebra", "7"]:
    swapped = watch_attention(model, [tokenizer.encode(start)[0], *page[1:]]).weights()
    print(f"first token {start!r:9} gets {swapped[:, :, 1:, 0].mean():.0%} of all attention")
fifth = page_weights[:, :, 6:, 5].mean()
print(f"token 5, for comparison, gets {fifth:.1%} of what comes after it")

# %% [markdown]
# Some tokens make a better first than others, but whatever stands there is looked at: the place counts more than the
# word. Why? A row of weights must add up to 1, and a head cannot say "nothing here for me". It needs somewhere to put
# its weight where it does no harm. So look at what the first token *gives*: how long is its value, compared with the
# others'?

# %%
length = seen.v.norm(dim=-1)          # [L, n, Hkv]
share = (length[:, 0] / length[:, 1:].mean(1)).mean(-1)
print(f"length of the first token's value: {length[:, 0].mean():.1f}, "
      f"of the others': {length[:, 1:].mean():.1f}")
print(f"shorter than the others' in {(share < 1).sum()} of {config.n_layers} layers, "
      f"to less than a third in {(share < 1 / 3).sum()}")

# %% [markdown]
# A large weight on a short value: little is added. The first token is a drain for attention that is not needed, an
# *attention sink*.
#
# And the second dark column, in layers 3 to 9? It is the *the* in the middle of the sentence. Compare it with the first
# token, and with *cat*.

# %%
looked, words = watch_attention(model, ids), tokenizer.tokens(ids)
for place in (0, words.index("␣the"), words.index("␣cat")):
    weight = maps[3:10, :, place + 1 :, place].mean()
    size = looked.v[3:10, place].norm(dim=-1).mean()
    print(f"{words[place]:5} gets {weight:4.0%} of what comes after it; "
          f"length of its value {size:.1f}")

# %% [markdown]
# So a sink need not be the first token: a word that says little can become one, for some layers. The first is one in
# most layers. Any cache that forgets it pulls the plug; lesson 08 shows what happens then.

# %% [markdown]
# ## Play
# A puzzle. The last word below is *met*. Where does this head look for whom she met? Follow the last four rows, each to
# its darkest square.
#
# <details><summary>Answer</summary>
#
# Each looks at what followed the same word the last time: *Then* at the *Anna* behind the first *Then*, *Anna* at the
# *met* behind the second *Anna*, and the last *met* at *Clara*, not at Bruno: the *latest* time counts most. It is an
# induction head, one of the dark squares in the grid above.
#
# </details>
#
# Then type a sentence of your own, and walk through layers and heads. Find one that looks at itself (layer 8, head 1,
# after the first few words), one that looks at the token before, one that you cannot explain: most are of that kind. (At
# most 40 tokens are shown.)

# %%
@lru_cache(maxsize=8)
def weights_of(text):
    """Tokens of a text, and the weights of all heads [L, Hq, n, n]."""
    ids = tokenizer.encode(text)[:40]
    return tokenizer.tokens(ids), watch_attention(model, ids).weights()


def look(text, layer, head):
    """The map of one head on a text."""
    tokens, weights = weights_of(text)
    return plots.attention_map(weights[layer, head], tokens, f"Layer {layer}, head {head}")


explore(look, text="Anna met Bruno. Then Anna met Clara. Then Anna met",
        layer=(0, config.n_layers - 1, 17), head=(0, config.n_heads - 1, 5))

# %% [markdown]
# ## Attention without the big matrix
# The scores of a text are a matrix, n × n, for each head. That grows with the square. Must we have all of them at once?
# Softmax needs the whole row, it seems: its sum, and its largest score too. (In practice one subtracts the largest from
# all scores before exp. That changes nothing, since all powers and their sum shrink by the same factor; and no power is
# above 1.) But both can be kept *running*. Look at a few keys at a time, and keep three things: the largest score so
# far, the sum of exp(score − largest), and the values mixed with those powers. When a block brings a larger score, what
# you have was measured against the wrong maximum: shrink it by exp(old − new).

# %%
# NBVAL_CHECK_OUTPUT
scores = torch.tensor([[1.0, 3.0], [2.0, 5.0], [4.0, 4.0]])        # three blocks of two keys
values = torch.tensor([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]])
top, total, mix = -math.inf, 0.0, 0.0
for block, value in zip(scores, values):
    new_top = max(top, block.max().item())
    shrink = math.exp(top - new_top)
    powers = torch.exp(block - new_top)
    total = total * shrink + powers.sum().item()
    mix = mix * shrink + (powers @ value).item()
    top = new_top
    print(f"block {block.tolist()}: shrink by {shrink:.3f}, maximum {top:.0f}, "
          f"sum {total:.3f}, mix {mix:6.3f}")
at_once = scores.flatten().softmax(0) @ values.flatten()
print(f"mix / sum = {mix / total:.4f}; all at once = {at_once:.4f}")

# %% [markdown]
# The scores of a block can be forgotten before the next comes. This is the *online softmax*, and FlashAttention is
# this loop inside one GPU kernel. Let us count the bytes it saves: the scores of one layer, all heads, in float32.

# %%
BLOCK = 64
lengths = [512, 1024, 2048, 4096, 8192]
whole = [config.n_heads * n * n * 4 for n in lengths]
blocks = [config.n_heads * n * BLOCK * 4 for n in lengths]
print(f"at {lengths[-1]:,} tokens: {whole[-1] / 1e9:.2f} GB whole, "
      f"{blocks[-1] / 1e6:.1f} MB in blocks of {BLOCK} keys")
plots.score_memory(lengths, whole, blocks, BLOCK)

# %% [markdown]
# (FlashAttention cuts the queries into blocks, too, so that a block fits into the fast memory of the chip and its
# need does not grow at all.) Two things to keep apart. The *number of operations* stays the same: every query still
# meets every key. And in plain PyTorch, as in the lab, the loop is no faster; the gain comes when a kernel spares the
# trips to memory (lesson 14).
#
# Subtracting the maximum is not for beauty. A computer's numbers end somewhere, and exp gets there soon. Our model's
# scores would still pass in float32. In float16, which is common on GPUs, they would not.

# %%
largest = finite.max().item() / math.sqrt(config.head_dim)
print(f"the largest score on our page, divided by √D: {largest:.1f}")
for dtype in (torch.float32, torch.float16):
    limit = math.log(torch.finfo(dtype).max)
    power = torch.exp(torch.tensor(largest).to(dtype)).item()
    print(f"{str(dtype):13} exp overflows beyond {limit:4.1f}; exp of ours is {power:.3g}")

# %% [markdown]
# ### To read on
# - Ashish Vaswani and others, [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017): §3.2 is this lesson;
#   footnote 4 is the argument for √D.
# - Catherine Olsson and others, [In-context Learning and Induction Heads](https://arxiv.org/abs/2209.11895) (2022).
# - Maxim Milakov and Natalia Gimelshein, [Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867)
#   (2018): the three running numbers, four years before FlashAttention.
#
# ## What you can now do
# - Compute attention for three tokens on paper, and say what query, key and value are for.
# - Say why scores are divided by √D, and what √d would do to the weights.
# - Explain why old tokens' keys never change, and what that makes possible.
# - Tell which key/value head a query head reads, and what sharing saves.
# - Find a head's job by measuring, not by looking at one picture.
# - Compute a softmax without ever seeing the whole row.
#
# In the lab you write all of it, and then *your* attention runs in all layers of the real model.
#
# **Out loud**
# 1. A model has d = 4,096 and 32 heads. By what are its scores divided? A colleague says: by 64. Where does that 64
#    come from?
# 2. You process a prompt in two pieces. What must the mask of the second piece look like, and why is a square
#    triangle wrong?
# 3. Many heads give the first token most of their weight. Does that mean that it is the most important token?
# 4. In the online softmax, which of the three running numbers must shrink when the maximum rises? What do you see if
#    one of them does not?
#
# <details><summary>Answers</summary>
#
# 1. The heads have 4,096 / 32 = 128 numbers each, so by √128, about 11.3. 64 is √4,096, the root of the width.
# 2. n rows, T columns: row i sees the whole first piece and the second piece up to itself. A square triangle counts
#    from key 0, and hides most of the past.
# 3. No. Its values are short, so that a large weight adds little. It is where heads put weight that they do not need.
# 4. The sum and the mix (the maximum is replaced). If the mix does not shrink, early values count too much; if the sum
#    does not, the weights add up to less than 1 and the result is too small.
#
# </details>
