# {"full": "all", "status": "ok"}
# %% correct="all" imports="no"
