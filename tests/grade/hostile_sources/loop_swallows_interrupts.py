# {"full": "others", "status": "problems", "reason": "merge_pair: timeout"}
# %% correct="others"
# %%
def merge_pair(ids, pair, new_id):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
