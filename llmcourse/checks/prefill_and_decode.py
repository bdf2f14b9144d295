"""Probes of lab 06: the work of a step, the roofline, and the latency of a request."""

from __future__ import annotations

from llmcourse.checks import exercise, probe, raises

from .prefill_and_decode_inputs import HINTS, flops, gaps_of, longer_by, moved, small_model, times_of, wider_by

OURS = ("llmcourse.measure", "llmcourse.model")
OWN_WORK = {
    "forward_flops": ("torch.utils.flop_counter",),
    "forward_bytes": (),
    "roofline_seconds": (),
    "latency_summary": ("statistics", "numpy.percentile", "numpy.quantile", "numpy.median", "torch.quantile", "torch.median",
                        "torch.Tensor.quantile", "torch.Tensor.median"),
}

for name, calls in OWN_WORK.items():
    exercise(name, hints=HINTS[name], forbids=(*OURS, *calls))

EXACT = {"rtol": 1e-12, "atol": 1e-9}  # counts are whole numbers: any order of adding them gives the same


@probe("forward_flops", points=2, **EXACT,
       hint="For each token, a matrix [o, i] is o · i multiply-adds, and each of them is two operations; the feed-forward "
            "network has three matrices of d · f in every layer.")
def feed_forward_weights(answer, rng):
    config = small_model(rng)
    wider = config.with_(ffn_width=config.ffn_width + rng.integers(3, 40))
    return [flops(answer, wider, n, 4) - flops(answer, config, n, 4) for n in rng.sample(range(2, 30), 2)]


@probe("forward_flops", points=2, **EXACT,
       hint="Keys and values have Hkv heads, fewer than the queries' Hq: their matrices are [Hkv·D, d].")
def keys_and_values_have_their_own_heads(answer, rng):
    config, n = small_model(rng).with_(n_heads=12), rng.integers(2, 9)
    six, four, two = (flops(answer, config.with_(n_kv_heads=heads), n, 5) for heads in (6, 4, 2))
    return [six - two, six - four]


@probe("forward_flops", points=2, **EXACT,
       hint="Attention: each new query meets all n_past keys of the cache, D multiply-adds for the score and D more for "
            "the values, in each of Hq query heads and L layers.")
def a_longer_past_costs_more(answer, rng):
    config, past, more = small_model(rng), rng.integers(0, 900), rng.integers(1, 900)
    return [flops(answer, config, n, past + more) - flops(answer, config, n, past) for n in (3, 1)]


@probe("forward_flops", points=2, **EXACT,
       hint="Among the n new tokens a query meets its own key and those before it, never later ones: 1 + 2 + … + n pairs.")
def new_tokens_see_no_future(answer, rng):
    config, n = small_model(rng), rng.integers(5, 40)
    one, two, three, four = (flops(answer, config, times * n, 0) for times in (1, 2, 3, 4))
    return [three - 2 * two + one, four - 2 * three + two]  # all that grows in proportion to n cancels


@probe("forward_flops", hint="Logits are wanted for the last token only: V · d multiply-adds once, whatever n is.", **EXACT)
def the_output_head_serves_one_row(answer, rng):
    config, more = small_model(rng), rng.integers(10, 90)
    larger = config.with_(vocab_size=config.vocab_size + more)
    return [flops(answer, larger, n, 7) - flops(answer, config, n, 7) for n in (1, rng.integers(2, 30))]


@probe("forward_flops", **EXACT,
       hint="One token without a past still meets one key, its own. (This is the whole count: with the rest right, look for "
            "what does not depend on n_past.)")
def the_very_first_token(answer, rng):
    return [flops(answer, small_model(rng), 1, 0) for _ in range(2)]


@probe("forward_flops", hidden=True, points=2, **EXACT,
       hint="The head size D is a size of its own: Hq · D need not be d. Query and output are [Hq·D, d] and [d, Hq·D].")
def heads_need_not_fill_the_width(answer, rng):
    config = small_model(rng)
    sizes = rng.integers(3, 20), rng.integers(30, 60)
    small, large = (flops(answer, config.with_(head_dim=size), 6, 11) for size in sizes)
    return [large - small, large]


@probe("forward_flops", hidden=True, **EXACT,
       hint="A prompt computed in two steps costs what it costs in one, but for the second row of the output head.")
def a_prompt_in_two_steps(answer, rng):
    config, first, second = small_model(rng), rng.integers(3, 200), rng.integers(3, 200)
    pieces = flops(answer, config, first, 0) + flops(answer, config, second, first)
    return [pieces - flops(answer, config, first + second, 0), pieces]


@probe("forward_bytes", points=2, **EXACT,
       hint="The weights are read once for the whole step: nine tokens together need no more of them than one.")
def tokens_of_a_step_share_the_weights(answer, rng):
    config, more = small_model(rng), rng.integers(3, 40)
    return [wider_by(answer, config, more, n) for n in (1, 9)]


@probe("forward_bytes", points=2, **EXACT,
       hint="weight_bits and kv_bits are bits, and a byte has eight. Each counts for its own numbers.")
def bits_are_an_eighth_of_a_byte(answer, rng):
    config = small_model(rng).with_(n_layers=7, width=2 * rng.integers(80, 120) + 1)  # leaves parts of bytes
    past, more = rng.integers(5, 60), rng.integers(5, 60)
    weights = [wider_by(answer, config, 4, 1, bits) for bits in (16, 4.5)]
    return [*weights, longer_by(answer, config, past, more, 12) - 3 * longer_by(answer, config, past, more, 4)]


@probe("forward_bytes", points=2, **EXACT,
       hint="A tied table is one table: it is read once, as the output head, and the look-up adds nothing to that.")
def a_tied_table_is_read_once(answer, rng):
    config, more = small_model(rng), rng.integers(10, 90)
    larger = config.with_(vocab_size=config.vocab_size + more)
    before, after, many = (moved(answer, one, n, 4) for one, n in ((config, 1), (larger, 1), (config, 8)))
    return [after - before, many - before]


@probe("forward_bytes", points=2, **EXACT,
       hint="The cache keeps a key and a value, two of D numbers, for each of Hkv heads (not Hq) in each of L layers, of "
            "every token of the past.")
def the_cache_has_the_key_value_heads(answer, rng):
    config = small_model(rng)
    return [longer_by(answer, config, past, more, 16) for past, more in ((0, rng.integers(1, 900)), (350, 1))]


@probe("forward_bytes", **EXACT,
       hint="Key and value matrices are [Hkv·D, d], query and output [Hq·D, d] and [d, Hq·D]; no two of them need be alike.")
def each_matrix_has_its_own_shape(answer, rng):
    config = small_model(rng).with_(n_heads=12)
    wide, narrow = (moved(answer, config.with_(n_kv_heads=heads), 1, 0) for heads in (6, 2))
    more = moved(answer, config.with_(n_heads=24, n_kv_heads=2), 1, 0)
    return [wide - narrow, more - narrow]


@probe("forward_bytes", **EXACT,
       hint="Norms are weights too: two of d numbers in every layer, and one before the output head.")
def the_norms_are_weights_too(answer, rng):
    config = small_model(rng)
    return [moved(answer, config.with_(n_layers=layers), 1, 0, 16) for layers in rng.sample(range(1, 9), 2)]


@probe("forward_bytes", hidden=True, points=2, **EXACT,
       hint="Where the head is not the embedding table, n rows of that table are read too, one for each token; not all V.")
def an_untied_table_gives_n_rows(answer, rng):
    tied, n = small_model(rng), rng.integers(3, 9)
    one, some = (moved(answer, tied.with_(tied=False), rows, 5) for rows in (1, n))
    return [some - one, one - moved(answer, tied, 1, 5)]


@probe("forward_bytes", hidden=True, points=2, **EXACT,
       hint="Keys and values of the n new tokens are moved too: they are written.")
def new_keys_and_values_are_written(answer, rng):
    config, n = small_model(rng), rng.integers(50, 90)
    return [moved(answer, config, n, 3, 8, bits) - moved(answer, config, 1, 3, 8, bits) for bits in (8, 16)]


@probe("roofline_seconds", hint="Where computing takes longer than moving, the time is flops ÷ peak_flops.")
def bound_by_compute(answer, rng):
    flops, peak, bandwidth = rng.uniform(low=5e3, high=9e3), rng.uniform(low=2, high=9), rng.uniform(low=2, high=9)
    return [float(answer.roofline_seconds(flops, rng.uniform(low=1, high=9), peak, bandwidth)),
            float(answer.roofline_seconds(2 * flops, 1.0, peak, bandwidth))]


@probe("roofline_seconds", hint="Where moving takes longer than computing, the time is bytes ÷ bandwidth.")
def bound_by_memory(answer, rng):
    moved, peak, bandwidth = rng.uniform(low=5e3, high=9e3), rng.uniform(low=2, high=9), rng.uniform(low=2, high=9)
    return [float(answer.roofline_seconds(rng.uniform(low=1, high=9), moved, peak, bandwidth)),
            float(answer.roofline_seconds(1.0, 2 * moved, peak, bandwidth))]


@probe("roofline_seconds", points=2,
       hint="Computing and moving go on at the same time: the longer of the two counts, not their sum.")
def both_at_the_same_time(answer, rng):
    peak, bandwidth = rng.uniform(low=2, high=9), rng.uniform(low=20, high=90)
    seconds = [rng.uniform(low=1, high=2) for _ in range(6)]
    return [float(answer.roofline_seconds(one * peak, other * bandwidth, peak, bandwidth))
            for one, other in zip(seconds[:3], seconds[3:])]


@probe("roofline_seconds", hidden=True, rtol=1e-9, atol=0,
       hint="Operations belong to peak_flops, bytes to bandwidth. At the ridge point both take equally long.")
def at_the_ridge_point_and_real_sizes(answer, rng):
    peak, bandwidth, seconds = rng.uniform(low=1e11, high=1e15), rng.uniform(low=1e9, high=5e12), rng.uniform(low=1e-4)
    return [float(answer.roofline_seconds(seconds * peak * (1 + tilt), seconds * bandwidth, peak, bandwidth))
            for tilt in (-1e-3, 0.0, 1e-3)]


@probe("latency_summary", hint="TTFT is the time from the arrival to the first token; the clock need not start at 0.")
def ttft_counts_from_the_arrival(answer, rng):
    arrival, times = times_of(rng, 6)
    return float(answer.latency_summary(arrival, times)["ttft"])


@probe("latency_summary", points=2,
       hint="Gaps lie between tokens, k − 1 of them: the wait for the first token is the TTFT, and is no gap.")
def the_first_wait_is_no_gap(answer, rng):
    arrival, times = times_of(rng, rng.integers(4, 12), first=50.0)
    return float(answer.latency_summary(arrival, times)["itl_mean"])


@probe("latency_summary", points=2, hint="Sort the gaps before you pick from them: they come in any order.")
def percentiles_are_of_sorted_gaps(answer, rng):
    arrival, times = gaps_of(rng, rng.shuffled([0.1 * step for step in range(1, 12)]))
    figures = answer.latency_summary(arrival, times)
    return [float(figures[name]) for name in ("itl_p50", "itl_p95", "itl_p99")]


@probe("latency_summary",
       hint="Percentile p of m gaps stands at place (m − 1) · p ÷ 100, counted from 0; between two places, interpolate.")
def percentiles_are_interpolated(answer, rng):
    arrival, times = gaps_of(rng, sorted(rng.uniform(low=0.01, high=3) for _ in range(rng.choice([6, 8, 10]))))
    figures = answer.latency_summary(arrival, times)
    return [float(figures[name]) for name in ("itl_p50", "itl_p95", "itl_p99")]


@probe("latency_summary", points=2,
       hint="tokens_per_s is all k tokens over the time from the arrival to the last token, the first wait included.")
def all_tokens_over_the_whole_time(answer, rng):
    arrival, times = times_of(rng, rng.integers(3, 9), first=20.0)
    return float(answer.latency_summary(arrival, times)["tokens_per_s"])


@probe("latency_summary",
       hint="The dict has the keys ttft, itl_mean, itl_p50, itl_p95, itl_p99, tokens_per_s, and no others.")
def the_six_figures(answer, rng):
    figures = dict(answer.latency_summary(*times_of(rng, 5)))
    return [sorted(figures), float(figures["itl_mean"])]


@probe("latency_summary", hidden=True,
       hint="A single token has a TTFT and a rate, and no gaps: the four ITL figures are None. Two tokens have one gap.")
def one_token_and_two(answer, rng):
    return [dict(answer.latency_summary(*times_of(rng, n))) for n in (1, 2)]


@probe("latency_summary", hidden=True, hint="No token at all: raise ValueError, since there is nothing to sum up.")
def no_token_is_an_error(answer, rng):
    arrival, times = times_of(rng, 3)
    return [raises(ValueError, answer.latency_summary, arrival, []), float(answer.latency_summary(arrival, times)["ttft"])]


@probe("latency_summary", hidden=True, hint="The list of times belongs to the caller: leave it as it was.")
def times_stay_as_they_were(answer, rng):
    arrival, times = times_of(rng, 7)
    return [float(answer.latency_summary(arrival, times)["itl_mean"]), times]
