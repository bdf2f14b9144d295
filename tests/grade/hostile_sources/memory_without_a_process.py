# {"full": "others", "status": "ok"}
# %% correct="others"
# %%
import os


def merge_pair(ids, pair, new_id):
    for number in range(100):
        hoard = os.memfd_create(str(number))
        os.write(hoard, bytes(1 << 20))
