# %% [markdown]
# # 05 · Choosing the next token: sampling
# *90 minutes with the lab. You need: lesson 00 (logits, greedy decoding).*
#
# **The idea.** The model does not choose a word. It gives every token of its vocabulary a probability, and then
# somebody else throws dice. How those dice are loaded decides whether a text is dull, lively or mad.
#
# | letter or word | meaning |
# |---|---|
# | V | vocabulary: how many different tokens there are |
# | logit | the model's score for one token, any number |
# | softmax | turns logits into probabilities: positive numbers that add up to one |
# | greedy | always take the likeliest token |
# | temperature | what logits are divided by before softmax |
# | top-k, top-p | two filters: keep the k likeliest; keep the likeliest until they add up to p |
# | min-p | a filter that asks for a share of the likeliest token's probability |
# | repetition penalty | makes tokens that occurred less likely |
# | u | a uniform number, 0 ≤ u < 1: the luck of one draw |
# | seed | the number from which all luck of a request follows |
# | entropy | how undecided a distribution is, in bits |

# %%
from math import exp

from llmcourse import Engine, SamplingParams
from llmcourse.engine.sampling import uniform
from llmcourse.ops.sampling import (
    apply_temperature, draw, min_p_filter, repetition_penalty, top_k_filter, top_p_filter,
)
from llmcourse.workbook import explore, measured, plots, predict

import torch

engine = Engine()
tokenizer = engine.tokenizer


def next_logits(text):
    """The model's scores [V] for what follows a text."""
    return engine.model(tokenizer.encode(text))[-1].float()

# %% [markdown]
# ## From scores to probabilities
# Two beginnings of a sentence. One leaves much open, the other hardly anything. Here are the five best tokens of
# each, with their logits, and what softmax makes of them.

# %%
OPEN, CLEAR = "My favourite animal is the", "The capital of France is"
scores = {text: next_logits(text) for text in (OPEN, CLEAR)}
for text, row in scores.items():
    probabilities = row.softmax(-1)
    print(f"{text} …    V = {len(row):,}, all probabilities add up to {probabilities.sum():.4f}")
    for token in row.topk(5).indices.tolist():
        print(f"    {tokenizer.tokens([token])[0]:12} logit {row[token]:5.1f}   probability {probabilities[token]:6.1%}")

# %% [markdown]
# A logit by itself says little. What counts is the *distance* to the others, since softmax raises e to each logit and
# divides by the sum: two logits that are 1 apart are a factor of e apart in probability, wherever they stand.
#
# The article says that the logits at the last position give the next token. Is that so?

# %%
best = tokenizer.tokens([scores[OPEN].argmax().item()])[0]
greedy = engine.generate(OPEN, temperature=0, max_tokens=1).text
asked = [engine.generate(OPEN, temperature=1, max_tokens=1, seed=seed).text for seed in range(8)]
print(f"the best of the last row: {best}   the engine's greedy token: {greedy!r}")
print("eight draws:", asked)
holds = greedy == best.replace("␣", " ") and len(set(asked)) > 1
verdict = "holds for greedy decoding, as in lesson 04" if holds else "does not hold here"
print(f"C09, the last position's logits give the next token: {verdict};")
print(f"     in general they give a distribution: {len(set(asked))} different tokens in {len(asked)} draws")

# %% [markdown]
# That "in general" is worth a lesson. The model gives V probabilities; the token is chosen *outside* of it, by a few
# lines that know nothing of language. This lesson is about those lines.

# %% [markdown]
# ## Greedy, and what becomes of it
# The simplest rule: take the likeliest token, always. One would expect a good text from that, and it gives this:

# %%
PROMPTS = ["The train from the coast was late again, and", "I opened the door and", "My favourite thing about the sea is"]
N_TOKENS = 80
ways = {
    "greedy": SamplingParams(temperature=0, max_tokens=N_TOKENS, ignore_eos=True),
    "drawn at temperature 1": SamplingParams(temperature=1, seed=5, max_tokens=N_TOKENS, ignore_eos=True),
    "greedy, penalty 1.2": SamplingParams(temperature=0, repetition_penalty=1.2, max_tokens=N_TOKENS, ignore_eos=True),
}
results = engine.generate([prompt for prompt in PROMPTS for _ in ways], list(ways.values()) * len(PROMPTS))
texts = {way: results[i :: len(ways)] for i, way in enumerate(ways)}
for prompt, result in zip(PROMPTS, texts["greedy"]):
    print(f"{prompt}▸{result.text}\n")

# %% [markdown]
# It walks in circles. How badly? Take all runs of four tokens in such a text, and count those that stood in it before.
#
# **Predict.** What share of them, in percent, averaged over the three texts?

# %%
predict("repeated runs of four tokens, greedy", 10, "%")

# %%
def repeated(ids, length):
    """The share of runs of this length that stood in the text before."""
    runs = [tuple(ids[i : i + length]) for i in range(len(ids) - length + 1)]
    return 1 - len(set(runs)) / len(runs)


shares = {way: [sum(repeated(one.output_ids, n) for one in some) / len(some) for n in (1, 2, 3, 4)]
          for way, some in texts.items()}
measured("repeated runs of four tokens, greedy", 100 * shares["greedy"][3])
plots.repeats(shares)

# %% [markdown]
# Single tokens must repeat, in any text: *the* and the comma. Runs of four need not. Drawn text hardly has any, and
# neither has greedy text under a repetition penalty, which you will build.
#
# Why do the circles close? Let the model read its own greedy texts, and see how sure it was of each next token: near
# the beginning, and at the end.

# %%
for result in texts["greedy"]:
    logprobs = engine.model(result.prompt_ids + result.output_ids)[len(result.prompt_ids) - 1 : -1].log_softmax(-1)
    taken = logprobs.gather(1, torch.tensor(result.output_ids)[:, None]).exp().flatten()
    print(f"probability of the token taken: first 15 {taken[:15].mean():4.0%}, last 15 {taken[-15:].mean():4.0%}")

# %% [markdown]
# What was said once becomes likelier to be said again, the model is ever surer of it, and greedy has no way out. (The
# text about the sea has not closed its circle yet.) Larger models do it, too: Holtzman and others (2020, "The
# curious case of neural text degeneration") made the filter top-p against it, which you will meet below.
#
# What do the drawn texts look like?

# %%
for prompt, result in zip(PROMPTS, texts["drawn at temperature 1"]):
    print(f"{prompt}▸{result.text}\n")

# %% [markdown]
# Lively, and mad. Between these two lies what we want, and there are two kinds of tools: making the dice less even
# (temperature), and taking the worst numbers off them (filters).

# %% [markdown]
# ## Temperature, by hand
# Four tokens with the logits 2, 1, 0 and −1. Divide them by the temperature, then take softmax. Check one: at
# temperature 0.5 the logits are 4, 2, 0, −2, and each is e² ≈ 7.4 times as likely as the next.

# %%
# NBVAL_CHECK_OUTPUT
four = [2.0, 1.0, 0.0, -1.0]
table = {}
for temperature in (0.5, 1.0, 2.0, 10.0):
    weights = [exp(logit / temperature) for logit in four]
    table[f"temperature {temperature:g}"] = [weight / sum(weights) for weight in weights]
for name, row in table.items():
    print(f"{name:15}", "  ".join(f"{p:6.3f}" for p in row), f"   ratio {row[0] / row[1]:.2f}")

# %%
plots.temperatures(["logit 2", "logit 1", "logit 0", "logit −1"], table)

# %% [markdown]
# Towards 0 the best token takes everything: that is greedy, and engines treat temperature 0 as just that, since nobody
# can divide by 0. Towards infinity all tokens become alike. At 1 you get what the model learned.
#
# The order of the tokens never changes. Temperature alone cannot make a bad token impossible; and there are many:

# %%
for text, row in scores.items():
    print(text, "…")
    for temperature in (0.5, 1.0, 1.5):
        falling = apply_temperature(row, temperature).softmax(-1).sort(descending=True).values
        behind = falling[50:].sum()
        print(f"    temperature {temperature}: the best has {falling[0]:5.1%}, all behind the first 50 {behind:5.1%}")

# %% [markdown]
# This is the long tail. Each token in it is unlikely, but there are tens of thousands, and together they weigh. At
# temperature 1.5 even the capital of France is anybody's guess. One slip, and the text goes on from there as if it
# had been meant.

# %% [markdown]
# ## Three filters
# A filter sets logits to −∞, so that the probability is 0, and softmax shares out the rest anew. The three differ in
# where they cut. **Top-k** counts: the k likeliest stay.

# %%
row = scores[OPEN]
plots.kept_and_cut(tokenizer, row.softmax(-1), top_k_filter(row, 3).softmax(-1), "top-k 3", shown=12)

# %% [markdown]
# Grey is the model's own probability, green is what is left to draw from. What is kept grows, to add up to one again.
#
# **Top-p** (also called nucleus sampling) adds up: from the likeliest down, until the sum has reached p. The token that
# crosses the line is in.

# %%
p = 0.3
falling = row.softmax(-1).sort(descending=True)
running = falling.values.cumsum(-1)
n_kept = int((running - falling.values < p).sum())
for rank in (n_kept - 2, n_kept - 1, n_kept):
    token = tokenizer.tokens([falling.indices[rank].item()])[0]
    print(f"{rank + 1:3}. {token:10} sum so far {running[rank]:.3f}", "stays" if rank < n_kept else "is cut")

# %%
plots.kept_and_cut(tokenizer, row.softmax(-1), top_p_filter(row, p).softmax(-1), "top-p 0.3", shown=12)

# %% [markdown]
# **Min-p** compares: a token must be at least so many times as likely as the likeliest one. With min-p 0.2 a token
# stays when it has a fifth of the leader's probability.

# %%
plots.kept_and_cut(tokenizer, row.softmax(-1), min_p_filter(row, 0.2).softmax(-1), "min-p 0.2", shown=12)

# %% [markdown]
# ## Flat and sharp
# Which is best? A filter must do two things: leave room where there are many good tokens, and be strict where there
# is one. Top-k cannot: k is the same everywhere. Compare the other two on our two prompts, first at temperature 1.

# %%
def both(temperature):
    """Where top-p 0.9 and min-p 0.1 cut the two distributions."""
    heated = {f"{text} …": apply_temperature(row, temperature).softmax(-1) for text, row in scores.items()}
    return plots.two_bars(heated, top_p=0.9, min_p=0.1)


both(1.0)

# %% [markdown]
# Each curve runs over the tokens, the likeliest on the left (it leaves the picture at 10⁻⁷); what stands left of a line
# is kept. On the open question
# (left) top-p keeps many more than min-p, yet both act sensibly. Now raise the temperature:

# %%
both(1.5)

# %% [markdown]
# The right picture is the point. Heat lifts the tail, until far more than a tenth of the probability lies in it.
# So top-p, which insists on nine tenths, must take in thousands of tokens to get there, for a question with one
# answer. Min-p looks at the leader only, and stays strict. That is why it is liked at high temperatures.
#
# It has a price: on a flat distribution it is stricter, too, and text gets a little tamer. No filter knows what is
# *true*; each is a guess at where sense ends.

# %% [markdown]
# ## The order matters
# Temperature first, or top-p first? By hand: probabilities 0.6, 0.25, 0.1, 0.05, temperature 3, top-p 0.5.
# (A logit divided by 3 is the cube root of the probability; then all are made to add up to 1 again.)

# %%
small = torch.tensor([0.6, 0.25, 0.1, 0.05]).log()


def shown(logits):
    """Probabilities in short."""
    return [round(p, 2) for p in logits.softmax(-1).tolist()]


heated = apply_temperature(small, 3.0)
print("heated:                    ", shown(heated))
print("temperature, then top-p 0.5:", shown(top_p_filter(heated, 0.5)))
print("top-p 0.5, then temperature:", shown(apply_temperature(top_p_filter(small, 0.5), 3.0)))
for text, row in scores.items():
    first = int((top_p_filter(apply_temperature(row, 1.5), 0.9) > -torch.inf).sum())
    second = int((top_p_filter(row, 0.9) > -torch.inf).sum())
    print(f"{text} … top-p 0.9 keeps {first:,} tokens after temperature 1.5, {second:,} before it")

# %% [markdown]
# Another order, another set of tokens. So an engine must fix one and say which. Ours is that of the library
# `transformers`:
#
# > repetition penalty → temperature → top-k → top-p → min-p → draw
#
# and greedy is: penalty, then the largest. Others decide otherwise; llama.cpp, for one, puts the temperature last. When
# two engines write different texts with the same settings, compare this line first.
#
# ## Play
# All knobs at once, on either prompt. Try: temperature 2 with nothing else; then top-p 0.9; then top-p back to 1 and
# min-p 0.1. And temperature 0.1, which is as good as greedy.

# %%
def knobs(prompt, temperature, top_k, top_p, min_p):
    """The next token's distribution under temperature and filters."""
    row = scores[prompt]
    left = top_k_filter(apply_temperature(row, temperature), top_k)
    left = min_p_filter(top_p_filter(left, top_p), min_p)
    return plots.kept_and_cut(tokenizer, row.softmax(-1), left.softmax(-1), f"{prompt} …")


explore(knobs, prompt=[OPEN, CLEAR], temperature=(0.1, 2.1, 1.0), top_k=(0, 50), top_p=(0.0, 1.0, 0.9),
        min_p=(0.0, 1.0, 0.05))

# %% [markdown]
# ## The repetition penalty, and its trap
# A token that already stands in the text gets a lower logit: divided by the penalty. But what if the logit is
# negative? −2 divided by 2 is −1, which is *more* likely. So negative logits are multiplied. Look at the last token.

# %%
# NBVAL_CHECK_OUTPUT
logits = torch.tensor([2.0, 1.0, -2.0])      # the first and the last one occurred
penalised, divided = repetition_penalty(logits, [0, 2], 2.0), logits / torch.tensor([2.0, 1.0, 2.0])
for name, some in {"before": logits, "penalty 2": penalised, "both divided": divided}.items():
    print(f"{name:13} logits {some.tolist()}   probabilities {shown(some)}")

# %% [markdown]
# It helps against loops, as the bars above showed, and it is a blunt tool: it punishes *the* and the comma as much as
# the sentence that came back. Large values make a text avoid plain words.

# %% [markdown]
# ## Luck, and how to have the same again
# The draw itself: lay the probabilities side by side, in order of ids, into a stripe from 0 to 1. Take a uniform number
# u. The token on which it falls is drawn; a likely token is a broad target. Here are the six likeliest tokens (top-k 6),
# and three numbers u.

# %%
six = top_k_filter(scores[OPEN], 6)
ids = (six > -torch.inf).nonzero().flatten()
u_values = [0.10, 0.55, 0.93]
likely = six.softmax(-1)
plots.stripe(tokenizer.tokens(ids.tolist()), likely[ids].tolist(), u_values)

# %%
for u in u_values:
    print(f"u = {u}: {tokenizer.tokens([draw(likely, u)])[0]}, again {tokenizer.tokens([draw(likely, u)])[0]}")

# %% [markdown]
# The same logits and the same u give the same token, always. All randomness is in u. And where does u come from? Our
# engine computes it from three numbers: the seed, the number of the request, and the token's position in its text. They
# go through a hash, which mixes them until nothing of them can be seen.

# %%
# NBVAL_CHECK_OUTPUT
for seed in (1, 2):
    print(f"seed {seed}, positions 5 to 9:", "  ".join(f"{uniform(seed, 0, position):.4f}" for position in range(5, 10)))
luck = torch.tensor([uniform(1, 0, position) for position in range(10_001)], dtype=torch.float64)
correlation = torch.corrcoef(torch.stack([luck[:-1], luck[1:]]))[0, 1].item()
print(f"10,000 numbers: mean {luck.mean():.3f} (fair: 0.5)")
print(f"correlation of neighbours {correlation:+.3f} (fair: within ±0.02, 95 of 100 times)")

# %% [markdown]
# Neighbours look independent, as they should. Nothing is remembered from draw to draw, and so nothing can get out of
# step: a request draws the same tokens alone or in any company.

# %%
params = SamplingParams(temperature=0.9, top_p=0.9, seed=2, max_tokens=12)
alone = engine.generate(OPEN, params)
company = engine.generate([OPEN, *PROMPTS], [params, *[SamplingParams(seed=n, max_tokens=12) for n in (3, 4, 5)]])[0]
other = engine.generate(OPEN, temperature=0.9, top_p=0.9, seed=5, max_tokens=12)
print(f"seed 2:              {alone.text!r}")
print(f"again, with company: the same {alone.output_ids == company.output_ids}")
print(f"seed 5:              {other.text!r}")

# %% [markdown]
# ## How sure is it, along a text?
# Entropy puts one number on a distribution: how many yes-or-no questions, on average, to find out which token it will
# be. 0 bits: certain. 3 bits: as open as eight equally likely tokens.
#
# $$\text{entropy} = -\sum_{i=1}^{V} p_i \log_2 p_i$$

# %%
def bits(logits):
    """Entropy of each row of logits [n, V], in bits."""
    p = logits.double().softmax(-1)
    return -torch.special.xlogy(p, p).sum(-1) / torch.log(torch.tensor(2.0))


print(f"eight equal tokens: {bits(torch.zeros(8)):.1f} bits")
for text, row in scores.items():
    print(f"{text} … {bits(row):.1f} bits, like {2 ** bits(row):,.0f} equal tokens")

# %% [markdown]
# Now let the model read a short text, and before each token ask how undecided it is.

# %%
text = ("Once upon a time there was a little girl who lived in the United States of America. Her grandmother, who lived in "
        "Paris, the capital of France, sent her a box. In the box there was a parrot.")
ids = tokenizer.encode(text)
undecided = bits(engine.model(ids)[:-1]).tolist()
plots.entropy(tokenizer.tokens(ids[1:]), undecided)

# %% [markdown]
# Before a token that must come (*States* after *United*, the second *box*) there is hardly a choice; before a new thing
# enters the story there may be a hundred and more. No single k would be right for both. That is what top-p and min-p
# are for. (A surprise: *Once upon a time* is no sure thing for this model. With so little text before it, anything may
# follow.)
#
# ## What you can now do
# - Turn four logits into probabilities at any temperature, on paper.
# - Say which tokens a filter keeps, and which one crosses p.
# - Explain why the order of the knobs is part of an engine's contract.
# - Draw a token from a stripe, and say what a seed does and does not promise.
#
# In the lab you write all of it, and at the end your sampler chooses every token of the real model.
#
# **Out loud**
# 1. A colleague sets `top_p=0` to be greedy, and gets the wildest text ever. Which line would you look for in their code?
# 2. Why does the temperature come before top-p, and not after it? What would top-p otherwise be counting?
# 3. Same model, same seed, another machine: the first twenty tokens agree, then the texts part for good. Is the seed
#    broken?
#
# <details><summary>Answers</summary>
#
# 1. Something like `top_p = top_p or 1.0`. Python takes 0 for false, so 0 became "no filter".
# 2. A filter should judge the distribution that is drawn from. Before the temperature, top-p adds up probabilities that
#    nobody will use.
# 3. No. Another machine adds in another order, so its logits differ in the last bits. Sooner or later some u lies within
#    that difference of a boundary of the stripe (or, greedy, two logits do), a neighbour is drawn, and from there on the
#    model reads another text. A seed fixes u, not the logits.
#
# </details>
