# {"full": "all", "status": "ok"}
# %% correct="all"
# %% [raw] check="merge_pair"
check("01.merge_pair", merge_pair=merge_pair)
# %% [markdown] check="decode"
check("01.decode", decode=decode)
# %%
%%time
check("01.decode", decode=decode)
# %%
check("01.decode",  decode = decode) ;  hint("01.decode", 3)
