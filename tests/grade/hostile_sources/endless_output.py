# {"full": "others", "status": "problems", "reason": "merge_pair: timeout"}
# %% correct="others"
# %%
import os


def merge_pair(ids, pair, new_id):
    while True:
        print("more")
        os.write(1, b"more\n")
        os.write(2, b"more\n")
