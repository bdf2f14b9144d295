# %% [markdown]
# # 01 · A small lesson
