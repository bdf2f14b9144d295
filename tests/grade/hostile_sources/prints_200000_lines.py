# {"full": "all", "status": "ok"}
# %% correct="all"
# %%
quiet = merge_pair
for line in range(180_000):
    print("line", line)


def merge_pair(ids, pair, new_id):
    global line
    while line < 200_000:
        line += 1
        print("line", line)
    return quiet(ids, pair, new_id)
