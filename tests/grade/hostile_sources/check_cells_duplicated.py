# {"full": "all", "status": "ok"}
# %% correct="all"
# %% check="merge_pair"
check("01.merge_pair", merge_pair=merge_pair)
# %% check="merge_pair"
check("01.merge_pair", merge_pair=merge_pair)
