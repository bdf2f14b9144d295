# {"full": "others", "status": "problems", "reason": "merge_pair: process died: the process died (signal 9)"}
# %% correct="others"
# %%
import os
import signal


def merge_pair(ids, pair, new_id):
    os.kill(os.getpid(), signal.SIGKILL)
