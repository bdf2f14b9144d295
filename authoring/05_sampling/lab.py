# %% [markdown]
# # Lab 05 · Build the sampler
# Six exercises, about an hour. At the end your sampler chooses every token of the real model.
#
# | letter or word | meaning |
# |---|---|
# | V | vocabulary: how many different tokens there are |
# | T | tokens so far: the prompt, and what was generated |
# | logit | the model's score for one token; −∞ means never: its probability is 0 |
# | repetition penalty | makes tokens that occurred less likely |
# | temperature | what logits are divided by before softmax |
# | top-k, top-p | keep the k likeliest; keep the likeliest until they add up to p |
# | min-p | keep tokens with that share of the likeliest token's probability |
# | greedy | always the likeliest token |
# | u | a uniform number, 0 ≤ u < 1: the luck of one draw |
#
# All functions take one row of logits, a float32 tensor [V]. The first five return another one, and all leave the row
# that came in as it was: it belongs to the caller.

# %%
import math

from llmcourse import Engine, SamplingParams
from llmcourse.checks.sampling_inputs import FALSE_FAILURES, chi_square, chi_square_bound
from llmcourse.errors import NonFiniteLogits
from llmcourse.ops import sampling as reference
from llmcourse.workbook import check, hint, plots, run_mine, your_code

import torch

# %% [markdown]
# ### 05.1 Repetition penalty
# A small model loves to repeat itself. The penalty makes every token that already stands in the text less likely. Less
# likely means a lower logit, and logits come in both signs: think twice.
#
# *difficulty 2/5 · 10 minutes · unlocks: the sampler, in exercise 05.6*

# %% ex="repetition_penalty"
def repetition_penalty(logits: torch.Tensor, previous_ids: list[int], penalty: float) -> torch.Tensor:
    """The logits with every token that already occurred pushed down.

    Args:
        logits: [V], floats of either sign, perhaps −inf.
        previous_ids: prompt and output so far, a list [T] of ids, T ≥ 0; an id may occur often.
        penalty: a number > 0; above 1 pushes down, 1 does nothing, below 1 pushes up.

    Returns the new logits, [V]. Of a token in previous_ids, a positive logit is divided by the
    penalty and a negative one multiplied by it: both move down. It acts once on a token, however
    often that occurred. All other logits stay.

    Example: repetition_penalty([3., −1., 2.], [0, 1, 0], 2.) is [1.5, −2., 2.].
    """
    ### BEGIN SOLUTION
    seen = torch.tensor(sorted(set(previous_ids)), dtype=torch.long)
    old = logits[seen]
    penalised = logits.clone()
    penalised[seen] = torch.where(old > 0, old / penalty, old * penalty)
    return penalised
    ### END SOLUTION

# %% check="repetition_penalty"
check("05.repetition_penalty", repetition_penalty=repetition_penalty)

# %% [markdown]
# ### 05.2 Temperature
# One division, and one trap: a temperature of 10⁻³⁰ is legal, and a float32 ends at about 10³⁸.
#
# *difficulty 1/5 · 5 minutes · unlocks: the sampler, in exercise 05.6*

# %% ex="apply_temperature"
def apply_temperature(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """The logits with all their differences divided by the temperature.

    Args:
        logits: [V], perhaps with −inf among them; at least one is finite.
        temperature: a number > 0: below 1 makes the distribution sharper, above 1 flatter.

    Returns [V]: (logits − the largest logit) / temperature. Softmax looks at differences only, so
    taking the largest away changes no probability; it keeps a tiny temperature from overflowing.

    Example: apply_temperature([1., 3., 2.], 0.5) is [−4., 0., −2.].
    """
    ### BEGIN SOLUTION
    return (logits - logits.max()) / temperature
    ### END SOLUTION

# %% check="apply_temperature"
check("05.apply_temperature", apply_temperature=apply_temperature)

# %% [markdown]
# ### 05.3 Top-k
# Keep the k best. A filter does not choose: it sets all that it cuts to −∞, and what it keeps stays as it was.
#
# *difficulty 2/5 · 10 minutes · unlocks: the sampler, in exercise 05.6*

# %% ex="top_k_filter"
def top_k_filter(logits: torch.Tensor, k: int) -> torch.Tensor:
    """The k largest logits; −inf for all others.

    Args:
        logits: [V], perhaps with −inf among them.
        k: how many to keep, ≥ 0; 0 means no filter, and so does any k ≥ V.

    Returns [V] with exactly k logits kept. Of equal logits those with smaller ids come first.

    Example: top_k_filter([1., 4., 1., 3.], 3) is [1., 4., −inf, 3.]: of the two equal ones the
    smaller id stays.
    """
    ### BEGIN SOLUTION
    if k == 0:
        return logits
    best = logits.argsort(descending=True, stable=True)[:k]
    kept = torch.full_like(logits, -math.inf)
    kept[best] = logits[best]
    return kept
    ### END SOLUTION

# %% check="top_k_filter"
check("05.top_k_filter", top_k_filter=top_k_filter)

# %% [markdown]
# ### 05.4 Top-p
# Also called nucleus sampling. Walk from the likeliest token downwards and add up probabilities; when the sum has
# reached p, stop. The token whose probability made it reach p **is in**.
#
# *difficulty 3/5 · 15 minutes · unlocks: the sampler, in exercise 05.6*

# %% ex="top_p_filter"
def top_p_filter(logits: torch.Tensor, p: float) -> torch.Tensor:
    """The likeliest tokens until their probabilities add up to p; −inf for all others.

    Args:
        logits: [V], perhaps with −inf among them; at least one is finite.
        p: a number from 0 to 1. 0 keeps the likeliest token alone, 1 keeps everything.

    Returns [V]. A token stays when those before it, in order of likelihood, sum to less than p; so
    the token that reaches p stays, and one always does. Of equal ones the smaller id comes first.

    Example: with probabilities 1/8, 1/2, 1/8, 1/4 and p = 0.6, tokens 1 and 3 stay: 1/2 is not
    enough, 1/2 + 1/4 is.
    """
    ### BEGIN SOLUTION
    if p >= 1:
        return logits
    order = logits.argsort(descending=True, stable=True)
    probabilities = logits[order].softmax(-1)
    before = probabilities.cumsum(-1) - probabilities
    n_kept = max(1, int((before < p).sum()))
    kept = torch.full_like(logits, -math.inf)
    kept[order[:n_kept]] = logits[order[:n_kept]]
    return kept
    ### END SOLUTION

# %% check="top_p_filter"
check("05.top_p_filter", top_p_filter=top_p_filter)

# %% [markdown]
# ### 05.5 Min-p
# The youngest filter, and the shortest. The bar is not fixed: it hangs from the likeliest token.
#
# *difficulty 1/5 · 5 minutes · unlocks: the sampler, in exercise 05.6*

# %% ex="min_p_filter"
def min_p_filter(logits: torch.Tensor, min_p: float) -> torch.Tensor:
    """The tokens at least min_p times as likely as the likeliest; −inf for all others.

    Args:
        logits: [V], perhaps with −inf among them; at least one is finite.
        min_p: a number from 0 to 1. 0 keeps everything, 1 the likeliest (and its equals).

    Returns [V].

    Example: with probabilities 0.5, 0.3, 0.15, 0.05 and min_p = 0.2 the bar is 0.2 · 0.5 = 0.1:
    the first three stay.
    """
    ### BEGIN SOLUTION
    probabilities = logits.softmax(-1)
    return logits.masked_fill(probabilities < min_p * probabilities.max(), -math.inf)
    ### END SOLUTION

# %% check="min_p_filter"
check("05.min_p_filter", min_p_filter=min_p_filter)

# %% [markdown]
# ### 05.6 Sample
# Now all together, and the draw. The order is fixed:
#
# > penalty → temperature → top-k → top-p → min-p → draw
#
# The draw is the lesson's stripe: the probabilities of all tokens lie side by side, in order of ids, from 0 to 1, and u
# points at one of them. There is nothing random in your function: whoever calls it brings u along. So the same u gives
# the same token, and your answer can be checked to the last id.
#
# And one duty: when the model is broken, say so. A NaN among the logits must not become a token. The engine's error
# for that is `NonFiniteLogits`, imported above; it catches it, and adds which request it was.
#
# *difficulty 3/5 · 20 minutes · unlocks: the engine's sampler*

# %% ex="sample"
def sample(logits: torch.Tensor, params: SamplingParams, u: float, previous_ids: list[int]) -> int:
    """The id of the next token.

    Args:
        logits: [V], one row of the model's output; −inf marks a token that may not be drawn.
        params: has .repetition_penalty, .temperature, .top_k, .top_p and .min_p, as above, and
            temperature may be 0: greedy, the largest logit after the penalty (of equal ones the
            smallest id), whatever the filters and u say.
        u: a uniform number, 0 ≤ u < 1.
        previous_ids: prompt and output so far, a list [T] of ids.

    Returns an int: the first id, in order of ids, at which the running sum of the probabilities
    (after all filters, adding up to 1) exceeds u. Sum in float64: over a whole vocabulary the
    rounding of float32 adds up. A token of probability 0 is never drawn.

    Raises NonFiniteLogits, with a message, when the largest logit is NaN, inf or −inf.

    Example: probabilities 0.25, 0.25, 0.5. Any u below 0.25 gives 0, u = 0.25 gives 1 already,
    and u = 0.5 gives 2. With top_k = 1 only token 2 is left, and every u gives 2.
    """
    ### BEGIN SOLUTION
    largest = logits.max().item()
    if not math.isfinite(largest):
        raise NonFiniteLogits(f"the largest of {len(logits):,} logits is {largest}: nothing can be chosen from them")
    logits = repetition_penalty(logits, previous_ids, params.repetition_penalty)
    if params.temperature == 0:
        return int(logits.argmax())
    logits = apply_temperature(logits, params.temperature)
    logits = top_k_filter(logits, params.top_k)
    logits = top_p_filter(logits, params.top_p)
    logits = min_p_filter(logits, params.min_p)
    running = logits.double().softmax(-1).cumsum(-1)
    return int((running <= u * running[-1]).sum())
    ### END SOLUTION

# %% check="sample"
check("05.sample", sample=sample)

# %% [markdown]
# ## Is luck fair?
# Ids that agree one by one are the strongest check there is. But suppose that you had built another right sampler, which
# lays out its stripe in another order: how would one see that it is fair? By its counts. Draw many times, and compare
# how often each token came with how often it should have come; *chi-square* adds up the squared surprises.
#
# Luck may look unfair, too. So the test needs a bound, and a bound has a price: how often does it call a fair sampler
# unfair? Ours is set for once in a million; since the law behind it holds for very many draws, and the check makes a few
# hundred, the true rate of the check is a few in a million (the course's tests count it). The cell computes the bound,
# and then both sides: your sampler at its own temperature, and against the expectation of another one, which must fail.

# %%
# NBVAL_CHECK_OUTPUT
scores = torch.tensor([2.0, 1.0, 0.5, 0.0, -0.5, -1.0])
generator = torch.Generator().manual_seed(5)
luck = torch.rand(2000, generator=generator, dtype=torch.float64).tolist()
bound = chi_square_bound(len(scores) - 1)
with your_code():
    print(f"a fair sampler exceeds {bound:.1f} about once in {1 / FALSE_FAILURES:,.0f} tests")
    drawn = [sample(scores, SamplingParams(temperature=0.8), one, []) for one in luck]
    for temperature in (0.8, 1.0):
        statistic = chi_square(drawn, (scores / temperature).softmax(-1))
        fits = "as it should be" if statistic < bound else "not this distribution"
        print(f"drawn at 0.8, expected at {temperature}: chi-square {statistic:6.1f}, {fits}")

# %% [markdown]
# ## Your sampler and a real distribution
# One prompt, one row of real logits, and your filters on it. Grey is what the model says, green what is left to draw
# from.

# %%
engine = Engine()
tokenizer = engine.tokenizer
prompt = "My favourite animal is the"
row = engine.model(tokenizer.encode(prompt))[-1].float()

# %%
with your_code():
    cut = min_p_filter(top_p_filter(top_k_filter(apply_temperature(row, 0.8), 50), 0.9), 0.15)
    display(plots.kept_and_cut(tokenizer, row.softmax(-1), cut.softmax(-1), "top-k 50, top-p 0.9, min-p 0.15"))

# %% [markdown]
# And the engine's own sampler, on the same row, with five settings and two hundred numbers u each. You and the
# reference must draw the same ids.

# %%
# NBVAL_CHECK_OUTPUT
settings = [
    SamplingParams(temperature=1.0),
    SamplingParams(temperature=0.7, top_k=40),
    SamplingParams(temperature=1.5, top_p=0.9),
    SamplingParams(temperature=1.5, min_p=0.1),
    SamplingParams(temperature=0.9, top_k=100, top_p=0.8, min_p=0.02, repetition_penalty=1.3),
]
previous = tokenizer.encode(prompt)
with your_code():
    for params in settings:
        mine = [sample(row, params, one, previous) for one in luck[:200]]
        theirs = [reference.sample(row, params, one, previous) for one in luck[:200]]
        agree = sum(a == b for a, b in zip(mine, theirs))
        print(f"{agree} of {len(mine)} ids agree; {len(set(theirs))} different tokens")

# %% [markdown]
# ## Your sampler in the engine
# **Save this notebook first.** The next cell reads it as a file, checks your answers, and runs the real model with every
# stage that passes. A seed fixes all the luck of a run: the same seed, the same text.

# %%
result = run_mine("Once upon a time", folder=".", max_tokens=40, temperature=0.8, top_p=0.9, seed=7)

# %% [markdown]
# The stage *sampler* is yours now, one call for each token. From a terminal: `llmcourse generate "…" --mine
# --temperature 0.8`.
#
# Your `top_p_filter` sorts the whole vocabulary to keep a handful of tokens. The course's own sorts only those that can
# matter (`llmcourse/ops/sampling.py`): read its docstring, and say why none of the others can.
#
# Next: where does the time go? Why is the first token slow and every other fast? **Lesson 06.**
