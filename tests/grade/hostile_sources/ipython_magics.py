# {"full": "all", "status": "ok", "warning": "!ls in cell 7 is for a kernel"}
# %% correct="others"
# %%
%%time
FIVE = (17
    % 12)
def merge_pair(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged
merge_pair?
# %%
files = !ls
timing = %timeit -o -n 1 -r 1 merge_pair([1], (1, 1), 2)
