# {"full": "others", "status": "problems", "reason": "timeout"}
# %% correct="others"
# %%
import collections
import itertools

merge_pair = collections.deque(itertools.repeat(0), maxlen=0)
