# {"full": "all", "status": "ok", "warning": "merge_pair is answered in cell"}
# %%
def merge_pair(ids, pair, new_id):
    return "the first attempt"
# %% correct="all"
