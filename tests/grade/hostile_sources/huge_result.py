# {"full": "others", "status": "ok"}
# %% correct="others"
# %%
def merge_pair(ids, pair, new_id):
    return [bytes(30_000_000)]
