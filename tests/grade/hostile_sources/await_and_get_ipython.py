# {"full": "all", "status": "ok"}
# %%
import asyncio

two = await asyncio.sleep(0, 2)
get_ipython().run_line_magic("matplotlib", "inline")
display(two)
# %% correct="all"
