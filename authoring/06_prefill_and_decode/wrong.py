"""Named wrong answers of lab 06."""

from __future__ import annotations

from llmcourse.checks import edited, wrong

# ---- forward_flops ----

@wrong("forward_flops", says="each of them is two operations")
def a_multiply_add_counts_once(config, n_tokens, n_past):
    """It counts a multiply-add as one operation, so all of it is half of what it should be."""
    d, q, kv = config.width, config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    weights = 2 * d * q + 2 * d * kv + 3 * d * config.ffn_width
    pairs = n_tokens * n_past + n_tokens * (n_tokens + 1) // 2
    return config.n_layers * (n_tokens * weights + 2 * q * pairs) + config.vocab_size * d


edited("forward_flops", "forgets_attention", old=" + 4 * q * pairs", new="",
       says="Attention: each new query meets", why="It counts the weights only; attention's two products are missing.")

edited("forward_flops", "ignores_the_past", old="n_tokens * n_past + ", new="",
       says="all n_past keys of the cache", why="Its queries meet the new tokens only: n_past changes nothing.")

edited("forward_flops", "the_whole_square", old="n_tokens * (n_tokens + 1) // 2", new="n_tokens * n_tokens",
       says="never later ones", why="Every new query meets every new key in it, also those of later tokens.")

edited("forward_flops", "not_its_own_key", old="(n_tokens + 1) // 2", new="(n_tokens - 1) // 2",
       says="still meets one key, its own", why="A token does not meet its own key in it; it does in the model.")

edited("forward_flops", "ignores_gqa", old="2 * d * kv", new="2 * d * q",
       says="Keys and values have Hkv heads",
       why="It gives keys and values as many heads as queries, so their matrices are too large.")

edited("forward_flops", "logits_for_every_row", old="2 * config.vocab_size * d",
       new="2 * n_tokens * config.vocab_size * d",
       says="for the last token only",
       why="It multiplies every token by the output head; only the last one's logits are wanted.")

edited("forward_flops", "forgets_the_output_head", old=" + 2 * config.vocab_size * d", new="",
       says="Logits are wanted", why="The product with the output head is missing.")

edited("forward_flops", "two_feed_forward_matrices", old="3 * d * config.ffn_width", new="2 * d * config.ffn_width",
       says="three matrices", why="It counts two matrices in the feed-forward network; SwiGLU has three.")

edited("forward_flops", "heads_fill_the_width", old="config.n_heads * config.head_dim, ", new="config.width, ",
       says="size of its own", why="It takes d for Hq · D; here they differ.")

edited("forward_flops", "square_queries_and_keys", old="2 * d * q + 2 * d * kv", new="2 * d * d + d * q + d * kv",
       says="not d · d", why="It gives the query and the key matrix d · d numbers. They are [Hq·D, d] and [Hkv·D, d], not d · d.")

edited("forward_flops", "square_queries_and_output", old="2 * d * q + 2 * d * kv", new="2 * d * d + 2 * d * kv",
       says="not d · d", why="It gives the query and the output matrix d · d numbers. They are [Hq·D, d] and [d, Hq·D], not d · d.")

edited("forward_flops", "four_squares", old="2 * d * q + 2 * d * kv", new="4 * d * d",
       says="not d · d", why="It gives all four attention matrices d · d numbers. Query and output have Hq·D · d, key and value "
                             "Hkv·D · d, not d · d.")

# ---- forward_bytes ----

edited("forward_bytes", "weights_for_every_token", old="weights * weight_bits", new="n_tokens * weights * weight_bits",
       says="once for the whole step", why="It reads all weights again for each token; the tokens of a step share them.")

edited("forward_bytes", "a_tied_table_twice", old="rows = 0 if config.tied else n_tokens",
       new="rows = config.vocab_size if config.tied else n_tokens",
       says="one table", why="It counts a tied table twice, as embedding and as output head.")

edited("forward_bytes", "looks_up_rows_of_a_tied_table", old="0 if config.tied else n_tokens", new="n_tokens",
       says="adds nothing", why="It adds the looked-up rows although the tied table was read whole.")

edited("forward_bytes", "reads_an_untied_table_whole", old="0 if config.tied else n_tokens",
       new="0 if config.tied else config.vocab_size",
       says="n rows of that table", why="It reads a whole embedding table to look up n rows.")


@wrong("forward_bytes", says="a byte has eight")
def bits_for_bytes(config, n_tokens, n_past, weight_bits, kv_bits):
    """It returns bits: a byte has eight of them."""
    d, q, kv = config.width, config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    layer = 2 * d * q + 2 * d * kv + 3 * d * config.ffn_width + 2 * d
    rows = 0 if config.tied else n_tokens
    weights = config.n_layers * layer + d + config.vocab_size * d + rows * d
    return weights * weight_bits + (n_past + n_tokens) * 2 * config.n_layers * kv * kv_bits


@wrong("forward_bytes", says="a byte has eight")
def whole_bytes(config, n_tokens, n_past, weight_bits, kv_bits):
    """It divides by eight without the remainder and loses part of a byte; at 4.5 bits there are such."""
    d, q, kv = config.width, config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    layer = 2 * d * q + 2 * d * kv + 3 * d * config.ffn_width + 2 * d
    weights = config.n_layers * layer + d + config.vocab_size * d + (0 if config.tied else n_tokens) * d
    return weights * weight_bits // 8 + (n_past + n_tokens) * 2 * config.n_layers * kv * kv_bits // 8


edited("forward_bytes", "one_width_for_both", old="kept * kv_bits", new="kept * weight_bits",
       says="Each counts for its own numbers", why="It counts the cache with the bits of the weights.")

edited("forward_bytes", "cache_ignores_gqa", old="2 * config.n_layers * kv\n", new="2 * config.n_layers * q\n",
       says="Hkv heads (not Hq)", why="It keeps keys and values for every query head; they share.")

edited("forward_bytes", "projections_ignore_gqa", old="2 * d * kv", new="2 * d * q",
       says="Key and value matrices are", why="It gives the key and value matrices as many heads as the queries.")

edited("forward_bytes", "keys_without_values", old="* 2 * config.n_layers * kv", new="* config.n_layers * kv",
       says="a key and a value", why="It counts keys or values, but the cache keeps both.")

edited("forward_bytes", "one_layers_cache", old="* 2 * config.n_layers * kv", new="* 2 * kv",
       says="each of L layers", why="It counts the cache of a single layer.")

edited("forward_bytes", "cache_ignores_the_past", old="(n_past + n_tokens)", new="n_tokens",
       says="every token of the past", why="It does not read the keys and values of earlier tokens.")

edited("forward_bytes", "never_writes", old="(n_past + n_tokens)", new="n_past",
       says="they are written", why="The keys and values of the new tokens, which must be written, are missing.")

edited("forward_bytes", "forgets_the_norms", old=" + 2 * d\n", new="\n",
       says="Norms are weights too", why="The norms of the layers are missing.")

# ---- roofline_seconds ----

edited("roofline_seconds", "one_after_the_other", old="max(flops / peak_flops, bytes / bandwidth)",
       new="flops / peak_flops + bytes / bandwidth",
       says="not their sum", why="It adds the two times, as if nothing were fetched while the processor computes.")

edited("roofline_seconds", "the_shorter_one", old="max(flops", new="min(flops",
       says="takes longer", why="It returns the shorter time; the step is over when the longer one is.")

edited("roofline_seconds", "only_computing", old="max(flops / peak_flops, bytes / bandwidth)", new="flops / peak_flops",
       says="bytes ÷ bandwidth", why="It looks at the operations only; decode waits for bytes.")

edited("roofline_seconds", "ceilings_exchanged", old="flops / peak_flops, bytes / bandwidth",
       new="flops / bandwidth, bytes / peak_flops",
       says="flops ÷ peak_flops", why="It divides operations by bytes per second, and bytes by operations per second.")

edited("roofline_seconds", "rates_for_times", old="max(flops / peak_flops, bytes / bandwidth)",
       new="1 / max(flops / peak_flops, bytes / bandwidth)",
       says="the time is", why="It returns how often a second the work could be done, not how long it takes.")

# ---- latency_summary ----

edited("latency_summary", "the_first_wait_among_the_gaps",
       old="zip(token_times, token_times[1:])", new="zip([arrival, *token_times], token_times)",
       says="is no gap", why="It counts the wait for the first token among the gaps.")

edited("latency_summary", "gaps_out_of_order",
       old="sorted(after - before for before, after in zip(token_times, token_times[1:]))",
       new="[after - before for before, after in zip(token_times, token_times[1:])]",
       says="Sort the gaps", why="It picks percentiles from the gaps as they came, without sorting them.")

edited("latency_summary", "without_the_first_wait", old="len(token_times) / (token_times[-1] - arrival)",
       new="len(token_times) / max(token_times[-1] - token_times[0], 1e-9)",
       says="from the arrival to the last token",
       why="It divides by the time since the first token; the user waited since the arrival.")

edited("latency_summary", "gaps_for_tokens", old="len(token_times) / (token_times[-1] - arrival)",
       new="len(gaps) / (token_times[-1] - arrival)",
       says="all k tokens", why="It counts gaps, one fewer than tokens.")

edited("latency_summary", "the_clock_starts_at_0", old='"ttft": token_times[0] - arrival', new='"ttft": token_times[0]',
       says="need not start at 0", why="It takes the first token's time on the clock for the TTFT; subtract the arrival.")

edited("latency_summary", "nearest_place", old="return gaps[below] + (place - below) * (gaps[above] - gaps[below])",
       new="return gaps[round(place)]",
       says="interpolate", why="It takes the nearest of the gaps and does not interpolate.")

edited("latency_summary", "one_place_too_far", old="place = (len(gaps) - 1) * p / 100", new="place = len(gaps) * p / 100",
       says="(m − 1)", why="It counts places from m instead of m − 1.")

edited("latency_summary", "milliseconds", old='"ttft": token_times[0] - arrival',
       new='"ttft": 1000 * (token_times[0] - arrival)',
       says="TTFT is the time", why="It gives the TTFT in milliseconds; all times here are seconds.")


@wrong("latency_summary", says="belongs to the caller")
def takes_times_away(arrival, token_times):
    """It takes the times out of the caller's list one by one, and leaves it empty."""
    if not token_times:
        raise ValueError("no token")
    ttft, n, last, gaps = token_times[0] - arrival, len(token_times), token_times[-1], []
    while len(token_times) > 1:
        gaps.append(token_times[1] - token_times.pop(0))
    gaps.sort()

    def percentile(p):
        if not gaps:
            return None
        place = (len(gaps) - 1) * p / 100
        below = int(place)
        return gaps[below] + (place - below) * (gaps[min(below + 1, len(gaps) - 1)] - gaps[below])

    return {"ttft": ttft, "itl_mean": sum(gaps) / len(gaps) if gaps else None, "itl_p50": percentile(50),
            "itl_p95": percentile(95), "itl_p99": percentile(99), "tokens_per_s": n / (last - arrival)}
