# %% [markdown]
# # Lab 02 · A small lab with tensors

# %%
import torch

from llmcourse.workbook import check

# %% [markdown]
# ### 02.1 Scores
# *difficulty 2/5 · 10 minutes · unlocks: nothing*

# %% ex="scores"
def scores(q, k):
    """q [n, D] against k [T, D], scaled: float tensor [n, T]. Example: scores(ones(1, 4), ones(1, 4)) is [[2.0]]."""
    ### BEGIN SOLUTION
    return torch.softmax(q @ k.T / k.shape[1] ** 0.5, -1)
    ### END SOLUTION

# %% check="scores"
check("02.scores", scores=scores)
