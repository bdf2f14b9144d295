"""Probes of lab 07: never compute it twice."""

from __future__ import annotations

from llmcourse.checks import exercise, probe

from .kv_cache_inputs import HINTS, TinyModel, feed, keys_and_values, sizes, tried

OWN_WORK = ("llmcourse.cache", "llmcourse.engine", "llmcourse.measure", "llmcourse.workbook", "transformers")

for name in ("ConcatCache", "PreallocatedCache", "generate_cached", "kv_bytes_per_token"):
    exercise(name, hints=HINTS[name], forbids=OWN_WORK)

# ---- ConcatCache ----

@probe("ConcatCache", hint="The first update returns what came in: k as K, and v as V.")
def first_tokens_come_back(answer, rng):
    return feed(answer.ConcatCache(2), 0, keys_and_values(rng, 4))

@probe("ConcatCache", points=2,
       hint="New tokens go behind those that are there, along the tokens: K is [T, Hkv, D], the oldest first.")
def new_tokens_go_to_the_end(answer, rng):
    return feed(answer.ConcatCache(1), 0, keys_and_values(rng, 3, 1, 2))

@probe("ConcatCache", points=2, hint="Every layer keeps its own keys and values: layer 1 knows nothing of layer 0.")
def layers_stay_apart(answer, rng):
    cache, (a, b, c) = answer.ConcatCache(3), keys_and_values(rng, 4, 2, 1)
    return [feed(cache, layer, [piece]) for layer, piece in ((0, a), (2, b), (0, c), (1, c), (2, a))]

@probe("ConcatCache", points=2,
       hint="Two requests have two caches, and nothing in common: keep what is kept in self, made anew in __init__.")
def two_caches_share_nothing(answer, rng):
    (a, b, c), one, other = keys_and_values(rng, 3, 2, 1), answer.ConcatCache(1), answer.ConcatCache(1)
    return [feed(cache, 0, [piece]) for cache, piece in ((one, a), (other, b), (one, c), (other, c))]

@probe("ConcatCache", hidden=True,
       hint="The caller may reuse the memory of k and v: keep a copy of the first ones too.")
def memory_of_the_caller_may_change(answer, rng):
    cache, (a, b) = answer.ConcatCache(1), keys_and_values(rng, 3, 2)
    cache.update(0, *a), [tensor.zero_() for tensor in a]
    return feed(cache, 0, [b])

@probe("ConcatCache", hidden=True, hint="However a text is cut into steps, the same keys and values come back.")
def any_split_gives_the_same(answer, rng):
    (k, v), = keys_and_values(rng, 6)
    return [feed(answer.ConcatCache(1), 0, [(k[:cut], v[:cut]), (k[cut:], v[cut:])]) for cut in range(1, 6)]

# ---- PreallocatedCache ----

@probe("PreallocatedCache",
       hint="The first update returns what came in, k as K and v as V, and no more: T tokens, not the whole capacity.")
def the_first_tokens_come_back(answer, rng):
    return feed(answer.PreallocatedCache(2, 2, 5, 9), 0, keys_and_values(rng, 4))

@probe("PreallocatedCache", points=2,
       hint="New tokens are written behind those that are there; all of them come back, the oldest first.")
def tokens_are_written_behind(answer, rng):
    pieces = keys_and_values(rng, 3, 1, 1, 2, heads=3, head_dim=4)
    return feed(answer.PreallocatedCache(1, 3, 4, 8), 0, pieces)

@probe("PreallocatedCache", points=2, hint="Each layer keeps its own count of tokens.")
def layers_count_apart(answer, rng):
    cache, (a, b, c) = answer.PreallocatedCache(3, 2, 5, 20), keys_and_values(rng, 4, 1, 3)
    return [feed(cache, layer, [piece]) for layer, piece in ((0, a), (2, b), (0, c), (1, b), (2, a))]

@probe("PreallocatedCache", points=2,
       hint="Two requests have two caches, and nothing in common: the memory belongs to self, and is reserved in __init__.")
def two_requests_share_nothing(answer, rng):
    (a, b, c), one, other = keys_and_values(rng, 3, 2, 1), *(answer.PreallocatedCache(1, 2, 5, 7) for _ in range(2))
    return [feed(cache, 0, [piece]) for cache, piece in ((one, a), (other, b), (one, c), (other, c))]

@probe("PreallocatedCache", points=2,
       hint="Reserve the memory once: what comes back is a view of it, and begins at the same address every time.")
def memory_stays_in_place(answer, rng):
    cache = answer.PreallocatedCache(2, 2, 5, 7)
    got = [cache.update(1, *piece) for piece in keys_and_values(rng, 2, 1, 3)]
    return [len({K.data_ptr() for K, _ in got}), len({V.data_ptr() for _, V in got}), *got[-1]]

@probe("PreallocatedCache", points=2,
       hint="The last place may be used, and nothing beyond it: more than `capacity` tokens are a ValueError.")
def full_is_full(answer, rng):
    cache, (a, b, c) = answer.PreallocatedCache(1, 2, 5, 4), keys_and_values(rng, 3, 1, 1)
    return [tried(cache, 0, piece) for piece in (a, b, c)] + [tried(answer.PreallocatedCache(1, 2, 5, 2), 0, a)]

@probe("PreallocatedCache", hidden=True, points=2,
       hint="Check before you write and before you count: a cache that refuses must stay as it was.")
def a_refusal_changes_nothing(answer, rng):
    cache, (a, b, c) = answer.PreallocatedCache(1, 2, 5, 4), keys_and_values(rng, 2, 3, 1)
    return [tried(cache, 0, piece) for piece in (a, b, c, c, c)]

@probe("PreallocatedCache", hidden=True,
       hint="What was returned is still in use: a later update may add behind it, and must not write over it.")
def what_was_returned_stays(answer, rng):
    cache, (a, b, c) = answer.PreallocatedCache(2, 2, 5, 8), keys_and_values(rng, 3, 2, 1)
    early = cache.update(0, *a)
    return [feed(cache, 0, [c]), feed(cache, 1, [b]), list(early)]

@probe("PreallocatedCache", hidden=True,
       hint="However a text is cut into steps, the same keys and values come back: a prompt may come in pieces.")
def every_split_gives_the_same(answer, rng):
    ((k, v),), made = keys_and_values(rng, 6), answer.PreallocatedCache
    return [feed(made(1, 2, 5, 7), 0, [(k[:cut], v[:cut]), (k[cut:], v[cut:])]) for cut in range(1, 6)]

# ---- generate_cached ----

@probe("generate_cached", points=2,
       hint="The next id is the place of the largest logit, and it goes through the model next.")
def greedy_ids(answer, rng):
    return answer.generate_cached(TinyModel(rng), rng.ints(5, 0, 31), 12)

@probe("generate_cached", points=2,
       hint="The whole prompt in one call, then one token a call: what is in the cache need not be computed again.")
def no_token_is_computed_twice(answer, rng):
    model, n = TinyModel(rng), rng.integers(4, 8)
    new = answer.generate_cached(model, rng.ints(n, 0, 31), 5)
    return [new, [len(ids) for ids, _ in model.calls]]

@probe("generate_cached", points=2,
       hint="A position counts from the beginning of the text: after n tokens the next one stands at n, then n + 1.")
def positions_go_on(answer, rng):
    model = TinyModel(rng)
    answer.generate_cached(model, rng.ints(rng.integers(4, 9), 0, 31), 6)
    return [positions for _, positions in model.calls]

@probe("generate_cached", points=2,
       hint="Cut a greedy text anywhere: from every cut it must be continued in the same way.")
def every_cut_of_a_text_is_continued_alike(answer, rng):
    model = TinyModel(rng)
    text = model.greedy(rng.ints(2, 0, 31), 8)
    return [answer.generate_cached(model, text[:cut], len(text) - cut) for cut in range(1, len(text))]

@probe("generate_cached", hidden=True, points=2, hint="A cache belongs to one text: make a new one in every call.")
def texts_do_not_mix(answer, rng):
    model, one, other = TinyModel(rng), rng.ints(4, 0, 31), rng.ints(6, 0, 31)
    return [answer.generate_cached(model, ids, 4) for ids in (one, other, one)]

@probe("generate_cached", hidden=True,
       hint="With max_new = 0 there is nothing to do: an empty list, and no call of the model.")
def nothing_to_generate(answer, rng):
    model = TinyModel(rng)
    return [answer.generate_cached(model, rng.ints(3, 0, 31), 0), model.calls]

@probe("generate_cached", hidden=True, hint="The prompt's list belongs to the caller: it must stay as it was.")
def the_prompt_stays_as_it_was(answer, rng):
    ids = rng.ints(4, 0, 31)
    return [answer.generate_cached(TinyModel(rng), ids, 3), ids]

@probe("generate_cached", hidden=True, hint="A prompt of one token is a prompt: it stands at position 0.")
def a_prompt_of_one_token(answer, rng):
    model = TinyModel(rng)
    return [answer.generate_cached(model, rng.ints(1, 0, 31), 4), [positions for _, positions in model.calls]]

# ---- kv_bytes_per_token ----

@probe("kv_bytes_per_token", hint="A token leaves two tensors behind in every layer: its keys and its values.")
def keys_and_values_both_count(answer, rng):
    return float(answer.kv_bytes_per_token(sizes(head_dim=2 * rng.integers(3, 40)), 1))

@probe("kv_bytes_per_token", hint="Every layer keeps its own: multiply by the layers.")
def every_layer_counts(answer, rng):
    return [float(answer.kv_bytes_per_token(sizes(n_layers), 1)) for n_layers in rng.sample(range(2, 90), 2)]

@probe("kv_bytes_per_token", points=2,
       hint="Only key/value heads are kept, n_kv_heads of them; several query heads share one.")
def key_value_heads_count(answer, rng):
    kv = rng.integers(2, 9)
    return float(answer.kv_bytes_per_token(sizes(n_heads=4 * kv, n_kv_heads=kv, head_dim=6), 1))

@probe("kv_bytes_per_token", points=2, hint="bytes_per_value counts bytes, not bits: nothing is to be divided by 8.")
def bytes_are_not_bits(answer, rng):
    config = sizes(n_layers=rng.integers(2, 50))
    return [float(answer.kv_bytes_per_token(config, size)) for size in (4, 2, 1, 0.5)]

@probe("kv_bytes_per_token", hidden=True, hint="The head size is config.head_dim; it need not be width / n_heads.")
def head_size_is_its_own_number(answer, rng):
    config = sizes(n_heads=6, n_kv_heads=6, head_dim=2 * rng.integers(6, 30), width=60)
    return float(answer.kv_bytes_per_token(config, 1))

@probe("kv_bytes_per_token", hidden=True, points=2, hint="2 · L · Hkv · D · bytes: all five factors.")
def all_factors_together(answer, rng):
    kv = rng.integers(2, 9)
    config = sizes(rng.integers(10, 99), 3 * kv, kv, 2 * rng.integers(20, 70), width=640)
    return float(answer.kv_bytes_per_token(config, 2))
