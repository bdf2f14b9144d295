# {"full": "others", "status": "problems", "reason": "merge_pair: timeout"}
# %% correct="others"
# %%
import collections
import itertools


def merge_pair(ids, pair, new_id):
    collections.deque(itertools.repeat(ids), maxlen=0)
