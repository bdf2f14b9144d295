# %% [markdown]
# # Lab 01 · A small lab for the tests of the grader

# %%
from llmcourse.workbook import check, your_code

# %% [markdown]
# ### 01.1 Twice each number
# *difficulty 1/5 · 5 minutes · unlocks: nothing*

# %% ex="twice"
def twice(numbers: list[int]) -> list[int]:
    """Twice each number: n integers in, n integers out. Example: twice([1, 5]) is [2, 10]."""
    ### BEGIN SOLUTION
    return [2 * number for number in numbers]
    ### END SOLUTION

# %% check="twice"
check("01.twice", twice=twice)

# %% [markdown]
# ### 01.2 Scores
# *difficulty 2/5 · 10 minutes · unlocks: nothing*

# %% ex="scores"
def scores(q, k):
    """q [D] against each of k [T, D], scaled: T floats. Example: scores([2, 0, 0, 0], [[1, 1, 1, 1]]) is [1.0]."""
    ### BEGIN SOLUTION
    return [sum(a * b for a, b in zip(q, one)) / len(q) ** 0.5 for one in k]
    ### END SOLUTION

# %% check="scores"
check("01.scores", scores=scores)

# %% [markdown]
# ### 01.3 Bag
# *difficulty 1/5 · 5 minutes · unlocks: nothing*

# %% ex="Bag"
class Bag:
    """Counts words. Example: after add("a"), count("a") is 1."""

    ### BEGIN SOLUTION
    def __init__(self):
        """An empty bag."""
        self.words = []

    def add(self, word):
        """Put one word in."""
        self.words.append(word)

    def count(self, word):
        """How often the word is in the bag (an int)."""
        return self.words.count(word)
    ### END SOLUTION

# %% check="Bag"
check("01.Bag", Bag=Bag)

# %%
with your_code():
    print(twice([1, 2, 3]))
