# {"full": "all", "status": "problems", "reason": "cell 7, line 1: timeout"}
# %% correct="all"
# %%
while True: pass
# %%
while True: pass
# %%
while True: pass
# %%
while True: pass
# %%
while True: pass
# %%
while True: pass
