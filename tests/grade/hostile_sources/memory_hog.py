# {"full": "others", "status": "problems", "reason": "merge_pair: "}
# %% correct="others"
# %%
def merge_pair(ids, pair, new_id):
    hoard = []
    while True:
        hoard.append(b"x" * 50_000_000)
