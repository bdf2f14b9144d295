# %% [markdown]
# # 00 · One prompt, end to end
# *About 50 minutes: 30 for this page and its plays, 20 for the lab. You need: a little Python,
# and nothing else.*
#
# **The idea.** A language model predicts one token, a word or a piece of one. We append it, and ask again. That is
# all. And whoever watches an answer appear notices something odd: the first token takes its time, and then the others
# come running.
#
# In this lesson one prompt walks through a real model, one step at a time, on your machine. Nothing is simulated.
#
# | letter or word | meaning |
# |---|---|
# | token | a word, a piece of a word, or a sign; the unit that the model reads and writes |
# | id | a token's number |
# | V | vocabulary: how many different tokens there are |
# | d | width: how many numbers stand for one token inside the model |
# | n | tokens that go through the model in one step |
# | T | tokens so far |
# | TTFT | *time to first token*: from your Enter to the first token, in seconds |
# | ITL | *inter-token latency*: from one token to the next, in seconds |
#
# Every lesson begins with such a box; the words of all of them together are in `docs/glossary.md`.

# %%
from math import exp

from llmcourse import Engine
from llmcourse.workbook import explore, measured, plots, predict
from llmcourse.workbook.live import watch_tokens
from llmcourse.workbook.token_view import view_tokens

engine = Engine()
model, tokenizer = engine.model, engine.tokenizer
model

# %% [markdown]
# That line is the model: its name, how many numbers it was trained to hold (its *parameters*), how each number is
# held in memory, and where it computes. It is small enough for a laptop, and built like the large ones.
#
# One thing that the line does not say. To keep the download small, somebody had *rounded* the numbers before we got
# them: most of them to 4 bits each (the format is called Q4_1), those of the vocabulary to 8 (Q8_0). The engine holds
# the rounded numbers in full width and computes with them exactly. You can see the rounding: in a stretch of 32
# neighbours there are never more than 16 different values, since that is what 4 bits can tell apart.

# %%
groups = model.weights.layers[0].gate.float().reshape(-1, 32).sort(-1).values
different = 1 + (groups.diff(dim=-1) > 0).sum(-1)
print(f"{len(groups):,} stretches of 32 numbers in one matrix; the most varied one holds "
      f"{different.max()} different values")

# %% [markdown]
# What rounding costs, and how it is done well, is lesson 09. ([docs/models.md](../docs/models.md) has the details.) Now ask
# it something.

# %%
question = [{"role": "user", "content": "What is the capital of France?"}]
for token in engine.stream(question, temperature=0, max_tokens=30):
    print(token.text, end="", flush=True)

# %% [markdown]
# Before we ask where this sentence came from: what did the model *read*? More than you wrote. A model that was trained
# to chat expects its conversation in a fixed form, the **chat template**, and here it is, filled in.

# %%
# NBVAL_CHECK_OUTPUT
read = tokenizer.chat(question)
words = question[0]["content"].split()
print(f"your {len(words)} words became {len(read)} tokens:\n")
print(tokenizer.decode(read))

# %% [markdown]
# `<|im_start|>` and `<|im_end|>` are special tokens that say where a turn begins and ends; after the last line it is
# the assistant's turn to go on. And there are instructions that nobody typed: if you give none, this template puts in
# a *system prompt* of its own. All of it is read, and waited for, before the first word of the answer.
#
# From here on we leave the template out and give the model plain text, which it simply continues. Let us follow one
# prompt through the machine, and stop at every station:
#
#     text ──▶ ids ──▶ vectors ──▶ logits ──▶ one new token ──▶ text
#                ▲                                  │
#                └──────────── append it ───────────┘

# %% [markdown]
# ## Station 1: text becomes ids
# A model cannot read letters. A *tokenizer* cuts the text into tokens and looks up the number of each.

# %%
prompt = "The capital of France is"
ids = tokenizer.encode(prompt)
print(ids)
view_tokens(tokenizer, prompt)

# %% [markdown]
# Above each token is its id. The sign ␣ is a space: it belongs to the word that follows, so that "␣is" and "is" are
# different tokens. Here every word is one token. Rarer words are cut into pieces; lesson 01 shows where the scissors
# come from.

# %% [markdown]
# ## Station 2: ids become vectors
# An id is only a name; 253 is not "more" than 252. So the model owns a table with one row for each of its V tokens, d
# numbers long, and picks the rows of our ids. Those rows are what it computes with.

# %%
# NBVAL_CHECK_OUTPUT
table = model.weights.embed
print("the table [V, d]: ", list(table.shape))
x = table[ids]
print("our prompt [n, d]:", list(x.shape))
print("the first four numbers of ␣France:", [round(number, 3) for number in x[3, :4].tolist()])

# %%
plots.vectors(x[:, :96].float().tolist(), tokenizer.tokens(ids))

# %% [markdown]
# The picture shows the first 96 of the d columns. Nobody wrote these numbers: training found them. That words which
# mean similar things have similar rows is a discovery of lesson 02.

# %% [markdown]
# ## Station 3: vectors become logits
# Now the vectors climb through the model's layers, and the tokens look at each other on the way (lessons 03 and 04).
# What comes out at the top, for every position, is one score for each of the V tokens: how well would it fit here, as
# the next one? These scores are called *logits*.

# %%
# NBVAL_CHECK_OUTPUT
logits = model(ids)
print("logits [n, V]:", list(logits.shape))

# %% [markdown]
# One row for each position. The last row speaks about what follows the whole prompt, so it is the one that we want.
# *Softmax* turns its scores into probabilities that add up to one.

# %%
probabilities = logits[-1].softmax(-1)
best = probabilities.topk(5)
plots.next_token(tokenizer.tokens(best.indices.tolist()), best.values.tolist())

# %% [markdown]
# There it is. The model does not "look up" the capital of France. It has one row of scores, and in that row one token
# stands far above all others.

# %% [markdown]
# ## Station 4: one token, and again
# Take the best-scored token, append its id, and send the longer list through the model again. Every turn adds one
# token.

# %%
# NBVAL_CHECK_OUTPUT
text = list(ids)
for turn in range(5):
    scores = model(text)[-1]
    text.append(scores.argmax().item())
    print(repr(tokenizer.decode(text)))

# %% [markdown]
# You have just seen a language model write. Always taking the best score is called *greedy*; lesson 05 brings in
# dice.
#
# Notice that it does not stop after the answer. Nothing in the loop says that a text is over, unless the model says
# so itself: models that were trained to chat have a special token for "I am done". You will meet it in a moment.
#
# The next picture keeps the runners-up too: in each column stand the five tokens that the model found likeliest at
# that step, the darker the likelier. Watch how its certainty comes and goes.

# %%
def candidates(prompt, steps=8):
    """The five likeliest tokens at each step of a greedy answer."""
    result = engine.generate(prompt, temperature=0, max_tokens=steps, logprobs=5)
    return plots.candidates([
        [(tokenizer.tokens([token])[0], exp(logprob)) for token, logprob in step.top]
        for step in result.logprobs
    ])


candidates(prompt)

# %% [markdown]
# Play: type the beginning of a sentence, and see what the model considers. Try "The capital of Italy is", and then
# "Two plus two equals". A row of scores is not knowledge: a small model is often wrong, and you see how sure it was.

# %%
explore(candidates, prompt="Once upon a", steps=(2, 10, 8))

# %% [markdown]
# ## The wait
# Now the second half of the idea: *when* does each token come? The engine notes the time of every token. One bar is
# one token.

# %%
watch_tokens(engine, "What is the capital of France?")

# %% [markdown]
# The first bar is the TTFT; the others are the ITLs, much alike. (The prompt is your question in its template. The
# last box, `<|im_end|>`, is the special token: the model says that it is done, and the loop ends.) Type prompts of
# your own into the box above, a short one and a very long one (paste a page from somewhere), and compare the first bars.
#
# Why is the first token slower? Before it can come, the model must read the *whole prompt*, all its tokens in one step.
# This part of the work is called **prefill**. Each later token needs one more step, over just one token: **decode**.
# (How the engine avoids reading the prompt again at every step is the subject of lesson 07.)

# %% [markdown]
# ## Predict
# If the first token waits for the prompt, a longer prompt means a longer wait. Take a prompt of 400 tokens. How many
# times longer than one ITL will the TTFT be, **on your machine**? The chart above is your evidence. Write your number
# in place of the three dots before you go on: a guess that you wrote down teaches you more than a number that you read.

# %%
predict("TTFT ÷ ITL at 400 tokens", ..., "×")

# %%
sentence = "The train from the coast was late again, and nobody there seemed to mind. "
long_prompt = tokenizer.encode(sentence * 30)[:400]
result = engine.generate(long_prompt, temperature=0, max_tokens=17, ignore_eos=True)
itl = sorted(result.itl_s)[len(result.itl_s) // 2]
print(f"TTFT {1000 * result.ttft_s:.0f} ms, median ITL {1000 * itl:.0f} ms")
measured("TTFT ÷ ITL at 400 tokens", result.ttft_s / itl)

# %%
waits = [result.ttft_s, *result.itl_s]
plots.waits(tokenizer.tokens(result.output_ids), waits, "After a prompt of 400 tokens")

# %% [markdown]
# **This is the picture to keep.** One tall bar, and then many low ones: prefill, and decode.
#
# Look at it from the other side. The first token waited for *all* 400 tokens of the prompt. What did each of them cost,
# and what does a token cost that is written?

# %%
per_prompt_token = result.ttft_s / len(result.prompt_ids)
print(f"prefill: {1000 * per_prompt_token:5.2f} ms for each prompt token")
print(f"decode:  {1000 * itl:5.2f} ms for each new token, "
      f"{itl / per_prompt_token:.0f} times as much")

# %% [markdown]
# Reading many tokens at once is cheaper, token by token, than writing them one at a time. Why should a token cost more
# when it comes alone? That question is the key to half of this course; lesson 06 answers it with your machine's own
# numbers.
#
# ### Is it true?
# The [article that this course tests](../docs/claims.md) says that the second token comes much faster than the first,
# its statement [C10](../docs/claims.md#c10). Here is the verdict of your machine.

# %%
ratio = result.ttft_s / result.itl_s[0]
verdict = "holds" if ratio > 2 else "does not hold here"
print(f"C10: the second token comes much faster than the first: {verdict}.")
print(f"     After a prompt of 400 tokens it came {ratio:.0f} times faster.")

# %% [markdown]
# ### To read on
# - Jay Alammar, [The Illustrated GPT-2](https://jalammar.github.io/illustrated-gpt2/) (2019): the same walk, drawn.
# - Loubna Ben Allal and others, [SmolLM2: When Smol Goes Big](https://arxiv.org/abs/2502.02737) (2025): how the model
#   on your machine was made, from data to chat.

# %% [markdown]
# ## What you can now do
# - Name the stations between a prompt and its answer, and what each hands to the next.
# - Read a row of logits: how sure is the model, and of what?
# - Say what TTFT and ITL are, and which of them a long prompt makes worse.
#
# In the lab you write the loop of station 4 yourself and put the real model into it.
#
# **Out loud**
# 1. The model gives a row of scores for *every* position of the prompt. Why do we use only the last?
# 2. A chat service feels slow. Users say "nothing happens for seconds, then it is fast". Which of the two times is
#    bad, and what would you ask about their prompts?
# 3. You ask for the same greedy answer twice. What may differ? And if a friend asks on another machine?
#
# <details><summary>Answers</summary>
#
# 1. Row *i* scores what follows token *i*. For all but the last, the prompt already says what follows. (Training uses
#    all the rows; that is how the model learned.)
# 2. TTFT. How long the prompts are: the first token waits until all of the prompt was read.
# 3. The times, since your machine does other things too. The tokens do not, as long as the same engine does the same
#    sums in the same order: greedy decoding draws no lots. Another machine, another number type or another library
#    adds in another order, and the last digits of the logits differ. Where two tokens are almost equally good (a
#    *near-tie*), the other one may win there, and from that token on it is another text. So what is promised is: equal
#    logits up to rounding, and equal tokens up to the first near-tie.
#
# </details>
