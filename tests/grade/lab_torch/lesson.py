# %% [markdown]
# # 02 · A small lesson
