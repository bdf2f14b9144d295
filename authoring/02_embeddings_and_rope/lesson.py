# %% [markdown]
# # 02 · Numbers become vectors, and order enters: embeddings and RoPE
# *About 95 minutes: 45 for this page, 50 for the lab. You need: lesson 01 (ids and what a token
# is). The page has two halves, and between them is a good place for a walk.*
#
# **The idea.** Each id becomes a row of a large table, and rows that point in similar directions mean similar things.
# But attention, which mixes these rows, does not know which came first; so their queries and keys are *turned*, a
# little further for every position, and what is left of the turning is the distance between two tokens.
#
# | letter or word | meaning |
# |---|---|
# | V | vocabulary: how many rows the table has |
# | d | width: how many numbers stand for one token inside the model |
# | n | tokens that go through the model in one step |
# | D | head size: how many numbers a query or a key has |
# | Hq, Hkv | query heads, key/value heads: attention runs several times side by side (lesson 03) |
# | θ, theta | base of the rotary frequencies |
# | embedding | a token's row in the table |
# | cosine | of two vectors: 1 for the same direction, 0 for a right angle, −1 for opposite directions |
# | RoPE | *rotary position embedding*, the turning |

# %%
from collections import Counter
from dataclasses import replace
from math import pi

from llmcourse import Engine
from llmcourse.ops import default_parts
from llmcourse.ops.reference import rope, rope_angles
from llmcourse.text.corpus import speeches
from llmcourse.workbook import explore, measured, plots, predict
from llmcourse.workbook.positions import BACK, WAYS, look_back

import torch

engine = Engine()
model, tokenizer = engine.model, engine.tokenizer

# %% [markdown]
# # First half: meaning
# ## A table, and three ways to be near
# Looking up is all there is to it: in a table with V = 4 and d = 2, the ids 2, 0, 2 pick three rows.

# %%
# NBVAL_CHECK_OUTPUT
small = torch.tensor([[4.0, 0.0], [1.0, 1.0], [0.5, 0.25], [2.0, 1.0]])
print(small[torch.tensor([2, 0, 2])].tolist())

# %% [markdown]
# Which row is nearest to row 2, (0.5, 0.25)? The smallest *distance*, the largest *dot product* and the largest *cosine*
# (the dot product divided by both lengths, so that only directions count) need not agree.

# %%
# NBVAL_CHECK_OUTPUT
query = small[2]
for number in [0, 1, 3]:
    row = small[number]
    dot = (query @ row).item()
    cosine = dot / (query.norm() * row.norm()).item()
    print(f"row {number} {row.tolist()!s:11} distance {(query - row).norm():.2f}   "
          f"dot {dot:.2f}   cosine {cosine:.2f}")

# %% [markdown]
# Three questions, three winners. We ask the cosine: a row that is merely long should not be everybody's neighbour.
#
# ## The real table
# SmolLM2's has a row for each of its tokens.

# %%
# NBVAL_CHECK_OUTPUT
table = model.weights.embed.float()
print("the table [V, d]:", list(table.shape))
share = table.numel() / model.config.n_params
print(f"{table.numel() / 1e6:.1f} M numbers, {share:.0%} of the whole model")

# %%
rows = table / table.norm(dim=1, keepdim=True)  # all of length 1: dot products are cosines


def row_of(word):
    """The id of a word that is one token; the space belongs to it."""
    ids = tokenizer.encode(word)
    if len(ids) != 1:
        raise ValueError(f"{word!r} is {len(ids)} tokens: {tokenizer.tokens(ids)}")
    return ids[0]


def near(token, k=8):
    """The k rows nearest to one, as (token, cosine), itself first."""
    best = (rows @ rows[token]).topk(k)
    return list(zip(tokenizer.tokens(best.indices.tolist()), best.values.tolist()))


for word in [" king", " Monday", " seven", " France", " walked"]:
    print("   ".join(f"{token} {cosine:.2f}" for token, cosine in near(row_of(word))))

# %% [markdown]
# Nobody told the model that Monday is a day. It saw in which company each token occurs, and tokens that keep the same
# company ended up with similar rows.
#
# Other spellings are near, too: "␣king" and "␣King" have two ids, strangers in lesson 01, and here is where the model
# learned that they are relatives. But a word that is cut into several tokens has no row at all, and without its space a
# word is another token:

# %%
# NBVAL_CHECK_OUTPUT
for word in [" python", " snake", " JavaScript", "queen", "king"]:
    print(f"{word!r:14}", tokenizer.tokens(tokenizer.encode(word)))

# %% [markdown]
# ## How near is near?
# Is the cosine of ␣king and ␣queen large? Compare it with pairs that mean nothing: 20,000 pairs of rows, drawn at
# random.

# %%
generator = torch.Generator().manual_seed(0)
left, right = torch.randint(0, len(table), (2, 20_000), generator=generator)
random_pairs = (rows[left] * rows[right]).sum(1)
usual = random_pairs.mean().item()


def cosine_of(a, b):
    """Cosine of the rows of two words."""
    return (rows[row_of(a)] @ rows[row_of(b)]).item()


pairs = [(" Monday", " Tuesday"), (" king", " queen"), (" python", " java"),
         (" python", " snake")]
plots.cosines(random_pairs.tolist(), {f"{a[1:]}, {b[1:]}": cosine_of(a, b) for a, b in pairs})

# %% [markdown]
# A surprise: rows that nobody chose are not at right angles. All lean towards a common direction, and a cosine means
# little until it is compared with this hill.
#
# **Predict.** The [article that this course tests](../docs/claims.md) names python and snake as neighbours. How many of
# the V rows are nearer to ␣python than ␣snake is?

# %%
predict("rows nearer to python than snake", ..., "rows")

# %%
def rows_between(a, b):
    """How many other rows are nearer to a than b is."""
    cosines = rows @ rows[row_of(a)]
    return (cosines > cosines[row_of(b)]).sum().item() - 1


measured("rows nearer to python than snake", rows_between(" python", " snake"))
print("   ".join(f"{token} {cosine:.2f}" for token, cosine in near(row_of(" python"), 12)))

# %% [markdown]
# In the text that this model learned from, python is mostly a language. One row must serve for both meanings, and the
# animal lost. (Later layers tell them apart by the words around.)

# %% [markdown]
# ### Is it true?
# The statement [C05](../docs/claims.md#c05): the table is [V, d], and neighbours mean similar things: king and queen, python and snake, python and
# JavaScript. We call b a neighbour of a when fewer than 20 of the V rows stand between them. JavaScript has no row of
# its own here, so its place is taken by its first part, ␣Java, and both languages are written with a capital.

# %%
between = {f"{a[1:]}, {b[1:]}": rows_between(a, b)
           for a, b in [(" king", " queen"), (" python", " snake"), (" Python", " Java")]}
print("rows between them:", between)
hold = [n < 20 for n in between.values()]
verdict = ("holds" if all(hold) else "holds with a correction" if any(hold)
           else "does not hold here")
print("C05, neighbours mean similar things:", verdict)
print("     not neighbours:", [name for name, ok in zip(between, hold) if not ok] or "none")
print("     with a small p, python, Java:", rows_between(" python", " Java"), "rows between")

# %% [markdown]
# (The last line is a warning: a capital letter is a direction, too.)
#
# Play: look around. A tick puts the space in front of the word; words of several tokens have no row, and the first of
# their tokens is shown.

# %%
def neighbourhood(word, space_before):
    """The nearest rows of a word's first token."""
    ids = tokenizer.encode(" " * space_before + word) or [0]
    return plots.neighbours(*zip(*near(ids[0], 11)), usual)


explore(neighbourhood, word="doctor", space_before=True)

# %% [markdown]
# ## Directions
# If meaning is direction, then a *difference* of rows may mean something, too. The famous test is king − man + woman,
# the three words themselves left out. The last column is for honesty: the wanted word's place near the first or the
# third word alone, whichever is better.

# %%
def arithmetic(*words):
    """Place of d among the rows nearest to a − b + c, and its best place near a or c alone."""
    a, b, c, wanted = (row_of(f" {word}") for word in words)

    def place(vector):
        cosines = rows @ vector
        cosines[[a, b, c]] = -1
        return (cosines > cosines[wanted]).sum().item() + 1

    return place(table[a] - table[b] + table[c]), min(place(table[a]), place(table[c]))


questions = ["king man woman queen", "walked walk jump jumped", "Paris France Spain Madrid",
             "Berlin Germany Japan Tokyo", "Paris France Italy Rome"]
print("                                       place   without arithmetic")
for question in questions:
    a, b, c, wanted = question.split()
    place, before = arithmetic(a, b, c, wanted)
    print(f"{a + ' − ' + b + ' + ' + c:24} → {wanted:9} {place:7,} {before:10,}")

# %% [markdown]
# Mind the last column before you marvel at the first: most answers had a short way to go, and Rome, which had a long one,
# does not come first.
#
# ---
# # Second half: order
# ## Order gets lost
# Attention (all of lesson 03) lets a token look at the others: it compares its vector
# with theirs by dot products, turns these scores into weights, and takes the weighted mean. Try it by hand, on three
# tokens of width 2. For simplicity, each vector serves as query, key and value at once, and every token sees the whole
# sentence.

# %%
# NBVAL_CHECK_OUTPUT
vector = {"dog": torch.tensor([1.0, 0.0]), "bites": torch.tensor([0.0, 1.0]),
          "man": torch.tensor([1.0, 1.0])}


def looks_around(word, sentence):
    """What `word` makes of a sentence: weights, and the weighted mean of its vectors."""
    others = torch.stack([vector[other] for other in sentence])
    weights = (others @ vector[word]).softmax(0)
    return weights, weights @ others


for sentence in (["dog", "bites", "man"], ["man", "bites", "dog"]):
    weights, mean = looks_around("bites", sentence)
    said = ", ".join(f"{word} {weight:.3f}" for word, weight in zip(sentence, weights))
    print(f"{' '.join(sentence):14} bites sees: {said} → ({mean[0]:.4f}, {mean[1]:.4f})")

# %% [markdown]
# The same vector comes out. To the dog it matters who bites whom; to attention it does not: a sum does not know the order
# of its terms. Without help a transformer reads a bag of words.
#
# ## Turn, and compare
# The help is a rotation. Take a query and a key of width 2. Before they are compared, each is turned around the origin:
# by 0.4 radians for each position. Look at the first two panels: both arrows have moved, and the score is the same.

# %%
q, k = (2.0, 1.0), (-0.5, 2.0)
plots.turned(q, k, [(2, 0), (5, 3), (12, 3)], speed=0.4)

# %% [markdown]
# A dot product is made of two lengths and the angle between. Turning keeps the lengths, and if both turn by the same
# amount, the angle stays. So the score knows how far the two are *from each other*, and forgets where they are.
#
# The arithmetic of a turn by the angle φ: a pair (a, b) becomes (a·cos φ − b·sin φ, b·cos φ + a·sin φ). With numbers:

# %%
# NBVAL_CHECK_OUTPUT
def turn(pair, angle):
    """A pair of numbers, turned by an angle in radians."""
    a, b, angle = *pair, torch.tensor(angle)
    return torch.stack([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()])


for m, n in [(2, 0), (5, 3), (105, 103), (12, 3)]:
    a, b = turn(q, 0.4 * m), turn(k, 0.4 * n)
    print(f"q at {m:3} ({a[0]:5.2f}, {a[1]:5.2f})   k at {n:3} ({b[0]:5.2f}, {b[1]:5.2f})   "
          f"q·k = {a @ b:6.3f}")

# %% [markdown]
# ## Many clocks
# One hand is not enough: after a full turn it shows the same again, and distances would be mixed up. A clock has a fast
# hand and slow ones, and so has RoPE. A query has D numbers, which makes D/2 pairs, and pair i turns by
#
# $$θ^{-2i/D} \text{ radians per token,} \qquad i = 0 … D/2 - 1.$$
#
# Pair 0 turns by one radian a token, each next pair more slowly. For SmolLM2 (the tokens that a full turn takes are the
# pair's *wavelength*):

# %%
# NBVAL_CHECK_OUTPUT
D, theta, context = model.config.head_dim, model.config.rope_theta, model.config.context
print(f"D = {D}, θ = {theta:,.0f}, context {context:,} tokens")
for i in [0, 1, 16, 31]:
    speed = theta ** (-2 * i / D)
    print(f"pair {i:2}: {speed:.6f} radians a token, a turn in {2 * pi / speed:9,.1f} tokens")

# %%
plots.wavelengths(D, theta, context)

# %% [markdown]
# The fast pairs tell neighbours apart. But a good part of the pairs hardly moves over the whole context, and never comes
# round. Why so slow? What is a pair good for that tells hardly any positions apart?
#
# Ask the model what it does with them. We run it over a page of a speech and keep its keys as they are *before* they are
# turned. (The engine takes its stages from a table of functions, `parts`; we exchange one of them, `rope`, for one that
# also keeps what goes in.) What all keys of a head have in common is their mean; how long is it in each pair?

# %%
text = tokenizer.encode(speeches()["2026-Trump-1"])[:128]
parts = default_parts("cpu")


def queries_and_keys(ids):
    """For each layer the queries [n, Hq, D] and keys [n, Hkv, D], before they are turned."""
    seen = []

    def watch(x, cos, sin):
        seen.append(x)
        return rope(x, cos, sin)

    model(ids, replace(parts, rope=watch))
    return list(zip(seen[0::2], seen[1::2]))


layers = queries_and_keys(text)
common = torch.cat([k.float().mean(0) for q, k in layers])       # one row for each key head
lengths = torch.hypot(common[:, : D // 2], common[:, D // 2 :])  # j and j + D/2 are a pair
largest = Counter(lengths.argmax(1).tolist())
heads = [largest[i] for i in range(D // 2)]
plots.key_pairs(lengths.mean(0).tolist(), heads, context, theta)

# %%
turn_of = [2 * pi * theta ** (2 * i / D) for i in range(D // 2)]
n_slow = sum(heads[i] for i in range(D // 2) if turn_of[i] > context)
print(f"{len(common)} key heads; the longest pair is never before pair {min(largest)}; "
      f"in {n_slow} heads it is one that never comes round within {context:,} tokens")

# %% [markdown]
# There is the answer. A head that wants to say the same to *every* query, near or far ("I am a noun", "look at me when
# you need nothing"), must say it in channels that stay where they are; in a fast pair the sign would swing round with
# every few tokens. Fast pairs are for place, slow ones for content. A larger θ makes more of them slow, which is why
# models for long texts choose one; SmolLM2's is ten times that of the first Llama models.
#
# **Play: the dial.** All hands begin at the mark on the right, and turn as mathematicians turn, counter-clockwise. Move
# the position and watch: the upper ones race, the lower ones stand. The curve on the
# right is the score of a query and a key against their distance. Choose a single pair, and you see its wave; "all" adds
# the waves up. Then lower θ, and see where the curve goes.

# %%
explore(plots.rope_dial, position=(0, 256, 20), theta=(100, 1_000_000, 100_000),
        pair=["all", 0, 4, 8, 16, 31])

# %% [markdown]
# At small distances all waves agree, further away they fall out of step, and the sum sinks: near tokens can score higher
# by their place alone. (For equal vectors, as drawn here. A trained head may prefer the token three places back.)
#
# ## The rivals
# Turning is not the only way to say where a token stands. Before RoPE one *added* something to each token's vector: a
# row for each position that was **learned** like a word's (GPT-2), or one made of sines and cosines (**sinusoidal**, the
# first transformer). Or one says **nothing**: the causal mask alone tells a little. Let all four take the same exam. One
# layer of attention learns, from short random texts, to name the token that stood three places before. Then it gets
# longer texts.

# %%
TAUGHT = 32  # tokens
hits = {way: look_back(way, TAUGHT) for way in WAYS}
plots.looked_back(hits, TAUGHT, first=BACK)

# %%
for way, shares in hits.items():
    near_by, far_off = shares[: TAUGHT - BACK], shares[TAUGHT - BACK :]
    print(f"{way:11} {sum(near_by) / len(near_by):4.0%} right up to position {TAUGHT - 1}, "
          f"{sum(far_off) / len(far_off):4.0%} at later ones")

# %% [markdown]
# Within the length that they were taught, all that know places pass. Beyond it the learned rows were never trained, and
# that is the end; the sinusoids must be read by matrices which were fitted to the first positions; RoPE has nothing new to
# learn, since "three back" is the same turn everywhere. (A toy, and a task that suits RoPE: one that only needs the
# distance. Over long contexts real models with RoPE stumble as well, over distances that they never met; lesson 08 shows
# it.)
#
# ## Only the distance survives, measured
# Now with the model's own queries and keys, in all layers. For each layer we take the first head.

# %%
def scores(layer, q_start=0, k_start=0):
    """q·k of every query with every key of a layer's first head, from these positions on."""
    q, k = layers[layer]
    places = torch.arange(len(q))
    q = rope(q, *rope_angles(places + q_start, D, theta))[:, 0]
    k = rope(k, *rope_angles(places + k_start, D, theta))[:, 0]
    return q @ k.T


here = [scores(layer) for layer in range(len(layers))]
print(f"the largest of {sum(one.numel() for one in here):,} scores: "
      f"{max(one.abs().max().item() for one in here):.0f}")


def largest_change(**starts):
    """The largest difference to the scores at position 0, over all layers."""
    moved = [scores(layer, **starts) for layer in range(len(layers))]
    return max((new - old).abs().max().item() for new, old in zip(moved, here))


for shift in [1, 100, 1_000, 8_000]:
    change = largest_change(q_start=shift, k_start=shift)
    print(f"the whole text {shift:5,} tokens later: a score changes by at most {change:.4f}")
print(f"only the queries, 1 token later: by up to {largest_change(q_start=1):.1f}")

# %% [markdown]
# Where a text stands does not matter. The small rest grows with the position, and it is not RoPE's: a float32 holds about
# seven digits, and at position 8,000 the whole turns have eaten four of them.
#
# ### Is it true?
# The statement [C06](../docs/claims.md#c06): RoPE rotates vectors by position. Which vectors?

# %%
q, k = layers[5]
cos, sin = rope_angles(torch.arange(len(q)) + 7_000, D, theta)
stretched = (rope(q, cos, sin).norm(dim=-1) / q.norm(dim=-1) - 1).abs().max().item()
counted, calls = parts.counted()
model(text[:8], counted)
print(f"lengths change by at most {stretched:.0e} of themselves; in one pass through "
      f"{len(layers)} layers embed was called {calls['embed']} time, rope {calls['rope']}")
in_each_layer = calls["rope"] == 2 * len(layers)
verdict = ("does not hold" if stretched > 1e-5
           else "holds with a correction" if in_each_layer else "holds")
print("C06, RoPE rotates vectors by position:", verdict)
print("     not the table's rows: queries and keys, anew in each layer; values never turn")

# %% [markdown]
# ## What goes wrong
# Three mistakes are easily made, and hard to see. The first is about *which* channels form a pair. There are two customs:
#
# - **half-split**: channel j with channel j + D/2. SmolLM2, and all Llama models in the Hugging Face format.
# - **interleaved**: channel 2j with channel 2j + 1. The original paper, and Meta's own Llama files.
#
# With D = 4 and a quarter turn of the first pair (the second stays), look at who moves:

# %%
# NBVAL_CHECK_OUTPUT
def interleaved(x, cos, sin):
    """RoPE with channels 2j and 2j + 1 as pairs."""
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)


x = torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])
quarter = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]])     # cosines, sines
print("before:     ", x.flatten().tolist())
print("half-split: ", rope(x, *quarter).flatten().tolist())
print("interleaved:", interleaved(x, *quarter).flatten().tolist())

# %% [markdown]
# Neither is wrong, but a model was trained with one of them. Run SmolLM2 with the other, and with none.

# %%
right_logits = model(text)


def wrong_logits(**stages):
    """Logits [n, V] of the text with some stages exchanged."""
    return model(text, replace(parts, **stages))


others = {"interleaved": wrong_logits(rope=interleaved),
          "no rotation": wrong_logits(rope=lambda x, cos, sin: x)}
differences = {name: (logits - right_logits).abs().amax(1).tolist()
               for name, logits in others.items()}
plots.layouts(differences)

# %% [markdown]
# At position 0 every angle is 0, and the layouts agree to the last bit. **A test of the first position finds nothing.** Nor
# does a test that is too easy:

# %%
turns = {"right": rope, "interleaved": interleaved, "no rotation": lambda x, cos, sin: x,
         "backwards": lambda x, cos, sin: rope(x, cos, -sin)}
for name in ("right", "interleaved"):
    one = Engine(model, parts=replace(parts, rope=turns[name]))
    for prompt in ("The capital of France is", "Once upon a time"):
        said = one.generate(prompt, temperature=0, max_tokens=9).text
        print(f"{name:12} {prompt} …{said!r}")

# %% [markdown]
# Paris comes out of a bag of words, in any order. That is why this mistake lives so long.
#
# How bad is it? *Perplexity* says between how many equally likely tokens the model hesitates, on average over a text;
# lower is better.

# %%
def perplexity(logits):
    """exp of the mean surprise at the text's own next tokens."""
    surprise = -logits[:-1].log_softmax(-1).gather(1, torch.tensor(text[1:])[:, None])
    return surprise.mean().exp().item()


for name, turning in turns.items():
    print(f"{name:12} {perplexity(wrong_logits(rope=turning)):7.1f}")

# %% [markdown]
# The wrong layout is not much better than no order at all. And *backwards* is the second mistake, a wrong sign: the
# model then takes what came before for what comes after.
#
# (The two layouts differ only in the order of channels, so a file can be made for the other custom by sorting the rows of
# two weights. This very model came in a file of the interleaved kind; the loader sorted it back.)
#
# The third mistake is about digits. Many engines compute in bfloat16, which has 8 binary digits, two or three decimal
# ones. Weights can bear that. Positions cannot: beyond 256, whole numbers have no room in it. Let the text stand at the
# beginning, and then further and further out, as if a long conversation came before it.

# %%
def moved(start, dtype):
    """The stage that computes the angles, for a text that begins at `start`, in a dtype."""
    def angles(places, head_dim, theta, scaling=None):
        speeds = 1 / theta ** (torch.arange(0, head_dim, 2) / head_dim)
        turned = ((places + start).to(dtype)[:, None] * speeds.to(dtype)).float()
        return turned.cos(), turned.sin()
    return angles


print("text begins at   float32   bfloat16    (perplexity)")
for start in [0, 250, 1_000, 7_900]:
    row = [perplexity(wrong_logits(rope_angles=moved(start, dtype)))
           for dtype in (torch.float32, torch.bfloat16)]
    print(f"{start:14,} {row[0]:9.2f} {row[1]:10.2f}")

# %% [markdown]
# In the first line a bfloat16 engine looks perfect; a quick test would pass it, and users with long texts would find that
# the model "gets confused". So: test late positions, and compute angles in float32.
#
# ### To read on
# - Jianlin Su and others, [RoFormer](https://arxiv.org/abs/2104.09864) (2021): RoPE, from its authors.
# - Federico Barbero and others, [Round and Round We Go!](https://arxiv.org/abs/2410.06205) (2024): what real models use
#   the fast and the slow pairs for.
# - Amirhossein Kazemnejad and others, [The Impact of Positional Encoding on Length
#   Generalization](https://arxiv.org/abs/2305.19466) (2023): the rivals' exam in earnest; "none" does better than one thinks.
#
# ## What you can now do
# - Look a token up, find its neighbours, and say how near is near: compared with the hill of random pairs.
# - Show on paper that attention forgets order, and that the score of two turned vectors knows only their distance.
# - Read θ and D: how fast each pair turns, which never come round within the context, and what those are for.
# - Name three ways to get RoPE wrong that a test at position 0 does not see.
#
# In the lab you write the look-up, the search, the angles and the turn, and your rotation runs in every layer.
#
# **Out loud**
# 1. A colleague reads the cosine of ␣king and ␣queen as a percentage: "so much of their meaning is the same". What do
#    you say?
# 2. Why turn queries and keys in every layer, and not simply the rows of the table, once?
# 3. An engine is exactly right for the first token and slightly strange ever after. What do you look at first?
#
# <details><summary>Answers</summary>
#
# 1. A cosine is no percentage. In this table two tokens at random already have a large one. Ask how many rows stand
#    between the two: that says something about these two.
# 2. Turned rows would carry their place into everything that follows, values included, and after the first layer nothing
#    would keep it a pure rotation. Turning just before the comparison makes the *score* depend on the distance and leaves
#    what is passed on alone.
# 3. The rotation: layout, sign, or a position that is off. At position 0 the angle is 0, and all of them agree there.
#
# </details>
