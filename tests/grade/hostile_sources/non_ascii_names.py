# {"full": "all", "status": "ok", "file": "Ñandú Ωmega — 提出物 (最終版)"}
# %% correct="all"
# %%
größe_der_antwort = "naïve Zeichen: 🙂"


def 数える(ids):
    return len(ids)
