# {"full": "others", "status": "problems", "reason": "merge_pair: process died: the process died (signal 11)"}
# %% correct="others"
# %%
import ctypes


def merge_pair(ids, pair, new_id):
    return ctypes.string_at(0)
