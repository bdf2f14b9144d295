# {"full": "others", "status": "problems", "reason": "ModuleNotFoundError: No module named 'a_package_that_nobody_has'"}
# %% correct="others"
# %%
1 / 0
# %%
import a_package_that_nobody_has


def merge_pair(ids, pair, new_id):
    return a_package_that_nobody_has.merge(ids, pair, new_id)
