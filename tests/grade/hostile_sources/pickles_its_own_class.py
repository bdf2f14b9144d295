# {"full": "all", "status": "ok"}
# %% correct="others"
# %%
import pickle
from dataclasses import dataclass
from typing import get_type_hints


@dataclass
class Place:
    at: int


def merge_pair(ids, pair, new_id):
    assert get_type_hints(Place) == {"at": int}
    merged, i = [], pickle.loads(pickle.dumps(Place(0))).at
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged
