"""Named wrong answers of lab 07."""

from __future__ import annotations

import torch

from llmcourse.checks import edited, wrong

# ---- ConcatCache ----


@wrong("ConcatCache", says="nothing in common")
class KeptInTheClass:
    """What it keeps belongs to the class, so all requests write into one cache."""

    k, v = {}, {}

    def __init__(self, n_layers):
        pass

    def update(self, layer, k, v):
        for kept, new in ((self.k, k), (self.v, v)):
            same = layer in kept and kept[layer].shape[1:] == new.shape[1:]
            kept[layer] = torch.cat([kept[layer], new]) if same else new.clone()
        return self.k[layer], self.v[layer]


@wrong("ConcatCache", says="nothing in common")
class SharedByDefault:
    """Its store is a default value, and Python makes a default value once for all calls."""

    def __init__(self, n_layers, store={}):
        self.store = store

    def update(self, layer, k, v):
        before = self.store.get(layer)
        if before is not None and before[0].shape[1:] == k.shape[1:]:
            k, v = torch.cat([before[0], k]), torch.cat([before[1], v])
        self.store[layer] = k.clone(), v.clone()
        return self.store[layer]


edited("ConcatCache", "keeps_the_callers_memory", old="new.clone()", new="new",
       says="may reuse the memory",
       why="It keeps the first k and v themselves, and the caller may write into them later.")

edited("ConcatCache", "newest_first", old="torch.cat([kept[layer], new])", new="torch.cat([new, kept[layer]])",
       says="oldest first", why="It joins the new tokens on at the front; the oldest comes first.")

edited("ConcatCache", "joins_heads", old="torch.cat([kept[layer], new])",
       new="torch.cat([kept[layer][: len(new)], new[: len(kept[layer])]], dim=1)",
       says="along the tokens", why="It joins along the heads; new tokens belong behind the old ones, dimension 0.")

edited("ConcatCache", "values_are_keys", old="((self.k, k), (self.v, v))", new="((self.k, k), (self.v, k))",
       says="v as V", why="It keeps the keys twice and loses the values.")

edited("ConcatCache", "joins_keys_to_the_values", old="torch.cat([kept[layer], new])", new="torch.cat([kept[layer], k])",
       says="V gets this step's v", why="From the second step on it joins the new keys to the values too: V gets this step's v.")


@wrong("ConcatCache", says="knows nothing of layer 0")
class OneStoreForAllLayers:
    """It has one store for all layers, so layer 1 is joined to layer 0."""

    def __init__(self, n_layers):
        self.k = self.v = None

    def update(self, layer, k, v):
        self.k = k.clone() if self.k is None else torch.cat([self.k, k])
        self.v = v.clone() if self.v is None else torch.cat([self.v, v])
        return self.k, self.v


@wrong("ConcatCache", says="New tokens go behind")
class OnlyTheNewest:
    """It returns this step's tokens only and forgets the rest."""

    def __init__(self, n_layers):
        pass

    def update(self, layer, k, v):
        return k.clone(), v.clone()


# ---- PreallocatedCache ----


@wrong("PreallocatedCache", says="own count of tokens")
class OneCountForAllLayers:
    """It has one count for all layers: layer 1 starts where layer 0 stopped."""

    def __init__(self, n_layers, n_kv_heads, head_dim, capacity):
        self.k = torch.zeros(n_layers, capacity, n_kv_heads, head_dim)
        self.v = torch.zeros_like(self.k)
        self.length = 0

    def update(self, layer, k, v):
        start, stop = self.length, self.length + len(k)
        if stop > self.k.shape[1]:
            raise ValueError("full")
        self.k[layer, start:stop], self.v[layer, start:stop] = k, v
        self.length = stop
        return self.k[layer, :stop], self.v[layer, :stop]


@wrong("PreallocatedCache", says="nothing in common")
class SharedMemory:
    """Its memory belongs to the class, so a second request writes over the first one's."""

    memory = {}

    def __init__(self, n_layers, n_kv_heads, head_dim, capacity):
        shape = (n_layers, capacity, n_kv_heads, head_dim)
        self.k, self.v = self.memory.setdefault(shape, (torch.zeros(shape), torch.zeros(shape)))
        self.length = [0] * n_layers

    def update(self, layer, k, v):
        start, stop = self.length[layer], self.length[layer] + len(k)
        if stop > self.k.shape[1]:
            raise ValueError("full")
        self.k[layer, start:stop], self.v[layer, start:stop] = k, v
        self.length[layer] = stop
        return self.k[layer, :stop], self.v[layer, :stop]


@wrong("PreallocatedCache", says="returns what came in")
class SkipsTheFirstToken:
    """It never writes the first token of a text: where nothing was written, later tokens find whatever lay in memory."""

    def __init__(self, n_layers, n_kv_heads, head_dim, capacity):
        self.k = torch.zeros(n_layers, capacity, n_kv_heads, head_dim)
        self.v = torch.zeros_like(self.k)
        self.length = [0] * n_layers

    def update(self, layer, k, v):
        start, stop = self.length[layer], self.length[layer] + len(k)
        if stop > self.k.shape[1]:
            raise ValueError("full")
        skipped = 1 if start == 0 else 0
        self.k[layer, start + skipped : stop], self.v[layer, start + skipped : stop] = k[skipped:], v[skipped:]
        self.length[layer] = stop
        return self.k[layer, :stop], self.v[layer, :stop]


@wrong("PreallocatedCache", says="must not write over it")
class OneBufferForAllAnswers:
    """It copies what it returns into one buffer, so the next layer's update changes what an earlier one returned."""

    def __init__(self, n_layers, n_kv_heads, head_dim, capacity):
        self.k = torch.zeros(n_layers, capacity, n_kv_heads, head_dim)
        self.v = torch.zeros_like(self.k)
        self.out_k, self.out_v = torch.zeros_like(self.k[0]), torch.zeros_like(self.k[0])
        self.length = [0] * n_layers

    def update(self, layer, k, v):
        start, stop = self.length[layer], self.length[layer] + len(k)
        if stop > self.k.shape[1]:
            raise ValueError("full")
        self.k[layer, start:stop], self.v[layer, start:stop] = k, v
        self.length[layer] = stop
        self.out_k[:stop], self.out_v[:stop] = self.k[layer, :stop], self.v[layer, :stop]
        return self.out_k[:stop], self.out_v[:stop]


edited("PreallocatedCache", "counts_before_it_checks",
       old="        if stop > self.k.shape[1]:\n",
       new="        self.length[layer] = stop\n        if stop > self.k.shape[1]:\n",
       says="Check before you write",
       why="It counts the tokens before it checks, so a refusal leaves a wrong count behind.")

edited("PreallocatedCache", "writes_before_it_checks",
       old="        if stop > self.k.shape[1]:\n",
       new="        room = self.k.shape[1] - start\n"
           "        self.k[layer, start:stop], self.v[layer, start:stop] = k[:room], v[:room]\n"
           "        self.length[layer] = min(stop, self.k.shape[1])\n"
           "        if stop > self.k.shape[1]:\n",
       says="must stay as it was", why="It writes what fits and then refuses: the cache is full of half a request.")

edited("PreallocatedCache", "refuses_the_last_place", old="if stop > self.k.shape[1]:", new="if stop >= self.k.shape[1]:",
       says="The last place may be used", why="It refuses the token that would fill the last place.")

edited("PreallocatedCache", "returns_the_whole_capacity", old="return self.k[layer, :stop], self.v[layer, :stop]",
       new="return self.k[layer].nan_to_num(), self.v[layer].nan_to_num()",
       says="T tokens, not the whole capacity", why="It returns all of the memory, also what was never written.")

edited("PreallocatedCache", "returns_copies", old="return self.k[layer, :stop], self.v[layer, :stop]",
       new="return self.k[layer, :stop].clone(), self.v[layer, :stop].clone()",
       says="a view of it", why="It returns copies, so every token still copies the whole text.")

edited("PreallocatedCache", "starts_again", old="start, stop = self.length[layer], self.length[layer] + k.shape[0]",
       new="start, stop = 0, k.shape[0]",
       says="behind those that are there", why="Every step writes at the beginning, over the tokens that were there.")

# ---- generate_cached ----


@wrong("generate_cached", says="need not be computed again")
def everything_again(model, ids, max_new):
    """It sends the whole text through the model at every step, with a new cache: right ids, and nothing saved."""
    new = []
    while len(new) < max_new:
        text = [*ids, *new]
        new.append(int(model(text, list(range(len(text))), model.new_cache(len(text))).argmax()))
    return new


@wrong("generate_cached", says="need not be computed again")
def prompt_token_by_token(model, ids, max_new):
    """It feeds the prompt one token at a time: right, but a prompt can go through the model in one call."""
    cache, new, text = model.new_cache(len(ids) + max_new), [], list(ids)
    if not max_new:
        return new
    for position, token in enumerate(text):
        logits = model([token], [position], cache)
    while True:
        new.append(int(logits.argmax()))
        if len(new) == max_new:
            return new
        logits = model(new[-1:], [len(ids) + len(new) - 1], cache)


edited("generate_cached", "positions_start_again", old="range(n_past, n_past + len(pending))", new="range(len(pending))",
       says="counts from the beginning of the text", why="Every step starts again at position 0.")

edited("generate_cached", "one_position_too_far", old="n_past += len(pending)",
       new="n_past += len(pending) + (n_past == 0)",
       says="the next one stands at n",
       why="Decode is one position too far: the first new token stands at n, not at n + 1.")

edited("generate_cached", "one_position_too_early", old="n_past += len(pending)",
       new="n_past += len(pending) - (n_past == 0)",
       says="the next one stands at n", why="The first new token gets the position of the prompt's last one.")

edited("generate_cached", "whole_text_into_the_cache", old="pending = new[-1:]", new="pending = list(ids) + new",
       says="do not fit",
       why="It feeds the whole text into a cache that holds it already, so every token is there twice.")

edited("generate_cached", "changes_the_prompt", old="        pending = new[-1:]",
       new="        pending = new[-1:]\n        ids.append(new[-1])",
       says="must stay as it was", why="It appends the new ids to the prompt's list, and the caller's list changes.")

edited("generate_cached", "feeds_the_last_one_too", old="    return new",
       new="    if new:\n        model(new[-1:], [n_past], cache)\n    return new",
       says="one token a call", why="It feeds the last new token as well, though nobody asks what comes after it.")

edited("generate_cached", "prompt_even_for_nothing", old="    while len(new) < max_new:",
       new="    if not max_new:\n        model(pending, list(range(len(pending))), cache)\n    while len(new) < max_new:",
       says="no call of the model", why="With max_new = 0 it computes the prompt for nothing.")


@wrong("generate_cached", says="make a new one in every call")
def one_cache_for_all_texts(model, ids, max_new):
    """It keeps one cache for all calls on a model, so a text finds the keys of the one before it."""
    if not max_new:
        return []
    model.kept = getattr(model, "kept", None) or model.new_cache(500)
    new, pending, n_past = [], list(ids), 0
    while len(new) < max_new:
        logits = model(pending, list(range(n_past, n_past + len(pending))), model.kept)
        n_past += len(pending)
        new.append(int(logits.argmax()))
        pending = new[-1:]
    return new


# ---- kv_bytes_per_token ----

edited("kv_bytes_per_token", "forgets_the_values", old="return 2 * config", new="return config",
       says="its keys and its values", why="It counts the keys and forgets the values.")

edited("kv_bytes_per_token", "query_heads", old="config.n_kv_heads", new="config.n_heads",
       says="Only key/value heads", why="It counts query heads; only key/value heads are kept.")

edited("kv_bytes_per_token", "bits_for_bytes", old="* bytes_per_value", new="* bytes_per_value / 8",
       says="not bits", why="It divides by 8, but bytes_per_value is in bytes already.")

edited("kv_bytes_per_token", "one_layer", old="config.n_layers * ", new="",
       says="multiply by the layers", why="It counts one layer; every layer keeps its own keys and values.")

edited("kv_bytes_per_token", "head_size_from_the_width", old="config.head_dim", new="(config.width // config.n_heads)",
       says="it need not be width / n_heads",
       why="It computes the head size as width / n_heads; config.head_dim may differ.")
