# {"full": "others", "status": "problems", "reason": "SyntaxError"}
# %% correct="others"
# %% ex="merge_pair"
def merge_pair(ids, pair, new_id)
    return ids
