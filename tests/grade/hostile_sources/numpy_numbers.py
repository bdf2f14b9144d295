# {"full": "all", "status": "ok"}
# %% correct="others"
# %%
import numpy


def merged_pair(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


def merge_pair(ids, pair, new_id):
    return [numpy.int64(one) if isinstance(one, int) else one for one in merged_pair(ids, pair, new_id)]
