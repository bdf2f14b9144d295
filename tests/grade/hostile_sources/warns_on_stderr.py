# {"full": "all", "status": "ok"}
# %% correct="all"
# %%
import sys
import warnings

quiet = merge_pair


def merge_pair(ids, pair, new_id):
    warnings.warn("this is deprecated", DeprecationWarning)
    print("a message on stderr", file=sys.stderr)
    return quiet(ids, pair, new_id)
