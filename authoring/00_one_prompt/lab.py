# %% [markdown]
# # Lab 00 · The loop
# One exercise, about twenty minutes. At the end your loop makes a real language model speak.
#
# | letter | meaning |
# |---|---|
# | n | tokens in the prompt |
# | T | tokens so far: the prompt, and what was generated |
# | V | vocabulary: how many different tokens there are |
#
# How a lab works: write your code in place of `raise NotImplementedError`, run the cell, then run the check below it.
# A check never breaks anything; run it as often as you like.

# %%
from time import perf_counter

from llmcourse import Engine
from llmcourse.workbook import check, hint, plots, your_code

# %% [markdown]
# ### 00.1 From one prediction to a text
# A language model does one thing: it reads ids and scores what may come next. Everything that you have ever seen one
# write came out of a loop around that. Write the loop.
#
# The model is a black box here, a function `next_logits`. You call it; you do not look inside. That is on purpose:
# the same loop will drive the toy below, the real model at the end, and every engine in this course.
#
# *difficulty 1/5 · 20 minutes · unlocks: nothing in the engine yet; all that you build later runs inside this loop*

# %% ex="generate_loop"
def generate_loop(next_logits, ids: list[int], max_new: int, stop_ids: set[int]) -> list[int]:
    """Generate ids one by one, each time the best-scored one (greedy decoding).

    Args:
        next_logits: a function from the ids of a text, a list [T] of ints, to a list [V] of
            floats: one score for every id that may come next. A call is expensive: make one for
            each new id, and no more.
        ids: the prompt, a list [n] of ints, n ≥ 1. It stays as it was.
        max_new: the most ids to generate, ≥ 0. The prompt does not count.
        stop_ids: ids that end the text. When one of them is generated it is kept, and the loop
            ends. One that stands in the prompt has no effect.

    Returns the new ids, a list of ints: without the prompt, with the stop id if there was one. Of
    equal scores the smallest id is taken.

    Example: a model that always favours the id after the last one, counting 0, 1, 2, 3, 0, 1, …
    gives generate_loop(model, [0, 1], max_new=3, stop_ids=set()) == [2, 3, 0], and with
    stop_ids={3} it gives [2, 3].
    """
    ### BEGIN SOLUTION
    new: list[int] = []
    while len(new) < max_new:
        scores = next_logits(ids + new)
        new.append(scores.index(max(scores)))
        if new[-1] in stop_ids:
            break
    return new
    ### END SOLUTION

# %% [markdown]
# Try it on the toy of the example: a "model" with four ids, which counts.

# %%
def counting_model(ids: list[int]) -> list[float]:
    """Scores [4]: the id after the last one gets 1, the others 0."""
    following = (ids[-1] + 1) % 4
    return [1.0 if token == following else 0.0 for token in range(4)]


with your_code():
    print(generate_loop(counting_model, [0, 1], max_new=3, stop_ids=set()), "should be [2, 3, 0]")
    print(generate_loop(counting_model, [0, 1], max_new=3, stop_ids={3}), "should be [2, 3]")

# %% check="generate_loop"
check("00.generate_loop", generate_loop=generate_loop)

# %% [markdown]
# Stuck? `hint("00.generate_loop", 1)` gives a nudge, level 2 says more, level 3 spells out the steps.

# %% [markdown]
# ## Your loop and a real model
# Now the black box becomes SmolLM2. `engine.model(ids)` gives the scores after every position, so the last row is
# what your loop wants.

# %%
engine = Engine()
tokenizer = engine.tokenizer
times = []


def real_next_logits(ids: list[int]) -> list[float]:
    """Scores [V] for the next token after ids [T]; notes how long the model took, in seconds."""
    start = perf_counter()
    scores = engine.model(ids)[-1].tolist()
    times.append(perf_counter() - start)
    return scores


# %%
story = (
    "The train from the coast was late again, and nobody on the platform seemed to mind. A man with "
    "two suitcases slept on the only bench. Next to him a girl in a yellow coat was feeding crumbs to "
    "three pigeons, and she gave each of them a name: Anna, Bruno and Clara. When at last the train "
    "came, the man woke up, took one of his suitcases and forgot the other. The girl ran after him. "
    "She was faster than the train, but the suitcase was heavy, and so she threw it through a window. "
)
prompt = [{"role": "user", "content": story + "What colour is the coat of the girl?"}]
mine = []
with your_code():
    ids, stop_ids = tokenizer.chat(prompt), set(tokenizer.eos_ids)
    mine = generate_loop(real_next_logits, ids, max_new=16, stop_ids=stop_ids)
    print(f"{len(ids)} tokens in, {len(mine)} out:", tokenizer.decode(mine))

# %% [markdown]
# That was your code. The course's engine runs the same loop, with tricks around it that you will build one by one.
# Greedy decoding has no luck in it, so the two must agree, id by id.

# %%
reference = engine.generate(prompt, temperature=0, max_tokens=16)
print("the engine:", reference.text)
print("the same ids as yours:", mine == reference.output_ids)

# %% [markdown]
# The same words, but not the same wait. Compare two pictures, at the same scale: first your loop, then the engine.

# %%
if mine:
    title = "Your loop: every token reads the whole text again"
    display(plots.waits(tokenizer.tokens(mine), times, title))

# %%
waits, title = [reference.ttft_s, *reference.itl_s], "The engine: only the first token does"
plots.waits(tokenizer.tokens(reference.output_ids), waits, title, up_to=max(times, default=None))

# %% [markdown]
# Your loop pays the price of the first token at every token, because `next_logits` reads the whole text anew each
# time. The engine pays it once. How it gets away with that is lesson 07, and the reason why it may is lesson 03.
#
# Next: what are these ids, and who decided that "Paris" is one and "unhappiness" is three? **Lesson 01.**
