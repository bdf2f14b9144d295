# {"full": "others", "status": "problems", "reason": "process died"}
# %% correct="others"
# %%
import os

merge_pair = os._exit(3)
