# {"full": "others", "status": "problems", "reason": "no cell answers merge_pair"}
# %% correct="others"
