"""Probes of lab 05: choosing the next token."""

from __future__ import annotations

import math

import torch

from llmcourse.checks import exercise, probe, raises
from llmcourse.engine.sampling import SamplingParams
from llmcourse.errors import NonFiniteLogits

from .sampling_inputs import HINTS, fits, logits_of, shared_places

OWN_WORK = ("llmcourse.ops", "transformers")
DRAWS = 300
LAST_U = 1 - 2**-53  # the largest uniform number below 1

for name in ("repetition_penalty", "apply_temperature", "top_k_filter", "top_p_filter", "min_p_filter", "sample"):
    exercise(name, hints=HINTS[name], forbids=OWN_WORK)

# ---- repetition_penalty ----

@probe("repetition_penalty", hint="A token that occurred moves down: its positive logit is divided by the penalty.")
def positive_logits_are_divided(answer, rng):
    logits = rng.uniform(13, low=0.5, high=9)
    return answer.repetition_penalty(logits, rng.sample(range(13), 4), rng.uniform(low=1.2, high=3))

@probe("repetition_penalty", points=2,
       hint="A negative logit is multiplied by the penalty: dividing it brings it nearer to 0, and the token gets likelier.")
def negative_logits_are_multiplied(answer, rng):
    logits = -rng.uniform(11, low=0.5, high=9)
    return answer.repetition_penalty(logits, rng.sample(range(11), 5), rng.uniform(low=1.2, high=3))

@probe("repetition_penalty", hint="The penalty acts once on a token, however often it stands in previous_ids.")
def once_however_often(answer, rng):
    return answer.repetition_penalty(3 * rng.normal(7), rng.ints(rng.integers(20, 40), 0, 5), rng.uniform(low=1.1, high=2))

@probe("repetition_penalty", hint="The logits that came in belong to the caller: write into a copy, logits.clone().")
def penalty_leaves_the_callers_logits(answer, rng):
    logits = 3 * rng.normal(9)
    return [answer.repetition_penalty(logits, rng.sample(range(9), 3), 1.7), logits]

@probe("repetition_penalty", hidden=True, hint="With no previous ids there is nothing to push down.")
def nothing_was_said_yet(answer, rng):
    return answer.repetition_penalty(3 * rng.normal(8), [], 1.9)

@probe("repetition_penalty", hidden=True, hint="−inf stays −inf and 0 stays 0, also for tokens that occurred.")
def minus_infinity_and_zero_stay(answer, rng):
    logits = torch.tensor(rng.shuffled([-math.inf, 0.0, 2.0, -2.0, -math.inf, 0.5]))
    return answer.repetition_penalty(logits, list(range(6)), rng.uniform(low=1.2, high=3))

@probe("repetition_penalty", hidden=True, hint="A penalty below 1 pushes up: the same rule, no special case.")
def a_penalty_below_one_pushes_up(answer, rng):
    return answer.repetition_penalty(3 * rng.normal(10), rng.sample(range(10), 6), rng.uniform(low=0.4, high=0.9))

@probe("repetition_penalty", hidden=True, hint="Ids are places in the logits; tokens that did not occur stay as they are.")
def a_long_text(answer, rng):
    return answer.repetition_penalty(4 * rng.normal(67), rng.ints(200, 20, 50), 1.3)

# ---- apply_temperature ----

def centred(scaled):
    """Differences to the largest: softmax sees no more, so dividing without taking it away is not wrong in itself."""
    return scaled - scaled.max()

@probe("apply_temperature", points=2,
       hint="Divide by the temperature: at 0.5 all differences double, at 2 they halve.")
def differences_are_divided(answer, rng):
    logits = 3 * rng.normal(9)
    temperatures = (rng.uniform(low=0.2, high=0.45), rng.uniform(low=1.2, high=4))
    return [centred(answer.apply_temperature(logits, temperature)) for temperature in temperatures]

@probe("apply_temperature", points=2,
       hint="Take the largest logit away before you divide: otherwise a tiny temperature makes several of them inf. "
            "Equal ones stay equal at any temperature.")
def a_tiny_temperature_does_not_overflow(answer, rng):
    logits = torch.tensor(rng.shuffled([900.0, 930.0, 985.0, 990.0, 990.0, 905.0]))
    return answer.apply_temperature(logits, 1e-37).softmax(-1)

@probe("apply_temperature", hint="The logits that came in belong to the caller: no -= and no /=.")
def temperature_leaves_the_callers_logits(answer, rng):
    logits = 3 * rng.normal(6)
    return [centred(answer.apply_temperature(logits, 0.7)), logits]

@probe("apply_temperature", hidden=True, hint="A token that is −inf stays −inf: never at any temperature.")
def minus_infinity_stays(answer, rng):
    logits = torch.tensor(rng.shuffled([-math.inf, 1.0, -3.0, -math.inf, 2.5]))
    return centred(answer.apply_temperature(logits, rng.uniform(low=0.3, high=3)))

@probe("apply_temperature", hidden=True, hint="A huge temperature makes all tokens equally likely, not NaN.")
def a_huge_temperature_is_flat(answer, rng):
    return answer.apply_temperature(30 * rng.normal(12), 1e9).softmax(-1)

@probe("apply_temperature", hidden=True, hint="Take the largest away, not the largest absolute value: all may be negative.")
def all_negative(answer, rng):
    return answer.apply_temperature(-900 - 100 * rng.uniform(5), rng.uniform(low=1e-37, high=2e-37)).softmax(-1)

# ---- top_k_filter ----

@probe("top_k_filter", hint="The k largest logits stay as they were, where they were; all others become −inf.")
def the_k_largest_stay(answer, rng):
    return answer.top_k_filter(rng.normal(17), rng.integers(2, 9))

@probe("top_k_filter", points=2,
       hint="Exactly k, also where logits are equal: of equal ones the smaller ids stay. A threshold keeps them all.")
def exactly_k_of_equal_ones_the_smaller_ids(answer, rng):
    logits = shared_places(rng, 14, 6)
    return [answer.top_k_filter(logits, k) for k in (5, 6, 8)]

@probe("top_k_filter", hint="k = 0 means no filter: everything stays.")
def k_zero_keeps_all(answer, rng):
    return answer.top_k_filter(rng.normal(6), 0)

@probe("top_k_filter", hint="k over V keeps everything; it is no error.")
def k_over_v_keeps_all(answer, rng):
    return answer.top_k_filter(rng.normal(5), rng.integers(6, 900))

@probe("top_k_filter", hint="The logits that came in belong to the caller: build a new tensor.")
def top_k_leaves_the_callers_logits(answer, rng):
    logits = rng.normal(10)
    return [answer.top_k_filter(logits, 3), logits]

@probe("top_k_filter", hidden=True, hint="k = 1 keeps one token: of equal largest ones the smallest id.")
def one_stays(answer, rng):
    rows = torch.tensor(rng.shuffled([1.0, 3.0, 3.0, -1.0, 3.0])), rng.normal(9)
    return [answer.top_k_filter(logits, 1) for logits in rows]

@probe("top_k_filter", hidden=True, hint="k = V keeps everything, and so does k = V − 1 all but one.")
def nearly_all(answer, rng):
    return [answer.top_k_filter(rng.normal(7), k) for k in (6, 7)]

@probe("top_k_filter", hidden=True,
       hint="Where fewer than k logits are finite, those stay and the others are −inf as before.")
def few_are_finite(answer, rng):
    return answer.top_k_filter(torch.tensor(rng.shuffled([-math.inf] * 5 + [0.5, -2.0])), 4)

@probe("top_k_filter", hidden=True, points=2, hint="All equal: the k smallest ids stay.")
def all_equal(answer, rng):
    return answer.top_k_filter(torch.full((300,), rng.uniform()), rng.integers(20, 200))

# ---- top_p_filter ----

@probe("top_p_filter", points=2,
       hint="The token that crosses p stays: a token goes only when those before it had reached p already.")
def the_token_that_crosses_p_stays(answer, rng):
    logits = logits_of(*rng.shuffled([0.4, 0.25, 0.15, 0.12, 0.08]))
    return [answer.top_p_filter(logits, p) for p in (0.45, 0.7, 0.95)]

@probe("top_p_filter", hint="p = 0 keeps the likeliest token alone. Python takes 0 for false: `p or 1.0` turns it into 1.")
def p_zero_keeps_the_likeliest(answer, rng):
    return answer.top_p_filter(rng.normal(9), 0.0)

@probe("top_p_filter", hint="p = 1 keeps every token, also the least likely.")
def p_one_keeps_all(answer, rng):
    logits = 4 * rng.normal(40)
    logits[rng.integers(0, 40)] = 60.0  # beside it the others vanish: the running sum is 1 at once, in float64 too
    return answer.top_p_filter(logits, 1.0)

@probe("top_p_filter", hint="When the sum has reached p exactly, no further token is needed.")
def exactly_p_is_enough(answer, rng):
    logits = torch.tensor(rng.shuffled([0.0] * 4 + [-math.inf] * 3))
    return [answer.top_p_filter(logits, p) for p in (0.25, 0.5, 0.75)]

@probe("top_p_filter", hint="Of equal tokens the smaller ids come first: sort with stable=True.")
def of_equal_ones_the_smaller_ids(answer, rng):
    return [answer.top_p_filter(torch.full((64,), rng.uniform()), p) for p in (0.0, 0.3)]

@probe("top_p_filter", hint="The logits that came in belong to the caller: build a new tensor.")
def top_p_leaves_the_callers_logits(answer, rng):
    logits = rng.normal(10)
    return [answer.top_p_filter(logits, 0.5), logits]

@probe("top_p_filter", hidden=True, points=2,
       hint="Go from the likeliest downwards, not in order of ids, and put what stays back in its place.")
def in_order_of_likelihood(answer, rng):
    logits = 2 * rng.normal(31)
    return [answer.top_p_filter(logits, rng.uniform(low=0.2, high=0.9)) for _ in range(3)]

@probe("top_p_filter", hidden=True,
       hint="Logits are no probabilities: softmax first. Adding 5 to all of them changes nothing.")
def softmax_first(answer, rng):
    logits = 2 * rng.normal(12)
    return [answer.top_p_filter(logits + shift, 0.6) > -math.inf for shift in (-50.0, 0.0, 5.0)]

@probe("top_p_filter", hidden=True, hint="What another filter cut stays cut, and the rest adds up to 1 again.")
def after_another_filter(answer, rng):
    logits = logits_of(*rng.shuffled([0.4, 0.2, 0.1, 0.0, 0.0, 0.0]))
    return [answer.top_p_filter(logits, p) for p in (0.5, 0.7, 1.0)]

@probe("top_p_filter", hidden=True, hint="One token stays at least, and a sharp distribution keeps no more.")
def a_sharp_distribution(answer, rng):
    logits = rng.normal(500)
    logits[rng.integers(0, 500)] = 40.0
    return [answer.top_p_filter(logits, p) for p in (1e-9, 0.9, 0.999)]

# ---- min_p_filter ----

@probe("min_p_filter", points=2,
       hint="The bar is min_p times the probability of the likeliest token, not min_p itself.")
def compared_with_the_likeliest(answer, rng):
    logits = logits_of(*rng.shuffled([0.3, 0.25, 0.2, 0.15, 0.06, 0.04]))
    return [answer.min_p_filter(logits, min_p) for min_p in (0.15, 0.4, 0.6)]

@probe("min_p_filter", hint="min_p = 0 keeps everything.")
def min_p_zero_keeps_all(answer, rng):
    return answer.min_p_filter(9 * rng.normal(13), 0.0)

@probe("min_p_filter", hint="min_p = 1 keeps the likeliest and its equals: a token on the bar stays.")
def min_p_one_keeps_the_likeliest(answer, rng):
    return answer.min_p_filter(torch.tensor(rng.shuffled([2.0, 2.0, 1.0, -1.0, 0.0])), 1.0)

@probe("min_p_filter", hint="The logits that came in belong to the caller: masked_fill, without the _ at its end.")
def min_p_leaves_the_callers_logits(answer, rng):
    logits = 2 * rng.normal(8)
    return [answer.min_p_filter(logits, 0.5), logits]

@probe("min_p_filter", hidden=True, points=2,
       hint="On a flat distribution even the likeliest token is rare: a bar at min_p itself would cut them all.")
def a_flat_distribution(answer, rng):
    return answer.min_p_filter(0.3 * rng.normal(400), rng.uniform(low=0.4, high=0.6))

@probe("min_p_filter", hidden=True,
       hint="Logits are no probabilities: compare after softmax. Adding 5 to all changes nothing.")
def probabilities_not_logits(answer, rng):
    logits = 2 * rng.normal(15)
    return [answer.min_p_filter(logits + shift, 0.2) > -math.inf for shift in (-40.0, 0.0, 5.0)]

@probe("min_p_filter", hidden=True, hint="−inf stays −inf, at min_p = 0 too.")
def cut_ones_stay_cut(answer, rng):
    logits = logits_of(*rng.shuffled([0.5, 0.3, 0.2, 0.0, 0.0]))
    return [answer.min_p_filter(logits, min_p) for min_p in (0.0, 0.5)]

# ---- sample ----

def drawn(answer, logits, params, n, rng):
    """n ids for n uniform numbers."""
    return [answer.sample(logits, params, rng.uniform(), []) for _ in range(n)]

@probe("sample", points=2,
       hint="The first id, in order of ids, at which the running sum of the probabilities exceeds u. Do not sort.")
def the_running_sum_exceeds_u(answer, rng):
    return drawn(answer, 2 * rng.normal(19), SamplingParams(), 25, rng)

@probe("sample", hint="u on a boundary belongs to the next token: the running sum must exceed u, not only reach it.")
def u_on_a_boundary(answer, rng):
    logits = torch.tensor(rng.shuffled([0.0] * 4 + [-math.inf] * 2))
    return [answer.sample(logits, SamplingParams(), u, []) for u in (0.0, 0.25, 0.5, 0.75, LAST_U)]

@probe("sample", hint="Temperature 0 is greedy: the largest logit, whatever u and the filters say. Never divide by 0.")
def temperature_zero_is_greedy(answer, rng):
    params = SamplingParams(temperature=0, top_k=3, top_p=0.5, min_p=0.1)
    return [answer.sample(rng.normal(n), params, u, []) for n, u in ((7, 0.0), (11, 0.6), (23, LAST_U))]

@probe("sample", hint="Greedy: of equal largest logits the smallest id.")
def greedy_takes_the_smallest_of_equal_ids(answer, rng):
    logits = torch.tensor(rng.shuffled([1.0, 4.0, 4.0, 4.0, -2.0, 0.0]))
    return answer.sample(logits, SamplingParams(temperature=0), rng.uniform(), [])

@probe("sample", points=2,
       hint="Temperature comes before top-p: a flatter distribution needs more tokens to reach p.")
def temperature_before_top_p(answer, rng):
    logits = logits_of(*rng.shuffled([0.6, 0.25, 0.1, 0.05]))
    return drawn(answer, logits, SamplingParams(temperature=rng.uniform(low=3, high=4), top_p=0.5), 20, rng)

@probe("sample", points=2,
       hint="After the filters the probabilities must add up to 1 again: softmax over what is left, then the running sum.")
def what_is_left_adds_up_to_one(answer, rng):
    return drawn(answer, logits_of(*rng.shuffled([0.3, 0.25, 0.2, 0.15, 0.1])), SamplingParams(top_k=2), 20, rng)

@probe("sample", hint="top_p = 0 leaves the likeliest token alone, and top_p = 1 leaves all.")
def top_p_zero_and_one(answer, rng):
    logits = rng.normal(8)
    return [drawn(answer, logits, SamplingParams(top_p=p), 8, rng) for p in (0.0, 1.0)]

@probe("sample", hint="top_k = 0 and a top_k over V leave all tokens.")
def top_k_zero_and_over_v(answer, rng):
    logits = rng.normal(9)
    return [drawn(answer, logits, SamplingParams(top_k=k), 8, rng) for k in (0, 50)]

@probe("sample", hint="When a single logit is finite, its token is drawn at every u, u = 0 included.")
def one_finite_logit(answer, rng):
    logits, params = torch.full((rng.integers(30, 60),), -math.inf), SamplingParams(temperature=1.3, top_p=0.0, top_k=99)
    logits[rng.integers(3, 30)] = -3.0
    return [answer.sample(logits, params, u, []) for u in (0.0, 0.5, LAST_U)]

@probe("sample", points=2,
       hint="A NaN among the logits is an error of the model: raise NonFiniteLogits, at temperature 0 too.")
def nan_is_an_error(answer, rng):
    logits = rng.normal(12)
    fine = answer.sample(logits, SamplingParams(), 0.5, [])
    logits[rng.integers(0, 12)] = math.nan
    return [fine, *(raises(NonFiniteLogits, answer.sample, logits, SamplingParams(temperature=t), 0.5, []) for t in (0, 1))]

@probe("sample", hint="The penalty comes first, before the temperature, and it counts for greedy as well.")
def the_penalty_counts_for_greedy(answer, rng):
    logits = torch.tensor(rng.shuffled([4.0, 3.0, 2.0, -1.0, 0.5]))
    params = SamplingParams(temperature=0, repetition_penalty=1.6)
    return [answer.sample(logits, params, 0.0, previous) for previous in ([], [int(logits.argmax())], list(range(5)))]

@probe("sample", hint="The logits that came in belong to the caller, who may still need them.")
def sampling_leaves_the_callers_logits(answer, rng):
    logits = 2 * rng.normal(16)
    params = SamplingParams(temperature=0.7, top_k=9, top_p=0.9, min_p=0.05, repetition_penalty=1.4)
    return [answer.sample(logits, params, rng.uniform(), [3, 5]), logits]

@probe("sample", points=2,
       hint="Over many draws each token must come as often as its probability says (chi-square; of a million fair "
            "samplers a few fail this).")
def draws_follow_the_distribution(answer, rng):
    logits = rng.uniform(6, low=-1, high=1)
    return fits(drawn(answer, logits, SamplingParams(temperature=1.4), DRAWS, rng), (logits / 1.4).softmax(-1))

@probe("sample", hidden=True, points=2,
       hint="After a filter, too, each token must come as often as its share of what is left (chi-square).")
def filtered_draws_follow_the_distribution(answer, rng):
    logits = torch.linspace(-1, 1, 30)[rng.shuffled(range(30))]
    best = (logits / 0.7).softmax(-1).topk(8)
    expected = torch.zeros(30).index_copy(0, best.indices, best.values / best.values.sum())
    return fits(drawn(answer, logits, SamplingParams(temperature=0.7, top_k=8), DRAWS, rng), expected)

@probe("sample", hidden=True, hint="The penalty acts on the model's own logits, before the temperature changes their signs.")
def the_penalty_before_the_temperature(answer, rng):
    logits, params = 3 + rng.normal(9), SamplingParams(temperature=0.6, repetition_penalty=1.5)
    return [answer.sample(logits, params, rng.uniform(), [1, 2, 5, 7]) for _ in range(20)]

@probe("sample", hidden=True,
       hint="Top-k comes before top-p: what top-k left adds up to 1 again, so fewer tokens are needed to reach p.")
def top_k_before_top_p(answer, rng):
    logits = logits_of(*rng.shuffled([0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.07]))
    return drawn(answer, logits, SamplingParams(top_k=3, top_p=0.7), 20, rng)

@probe("sample", hidden=True, hint="Top-p comes before min-p: it counts all that top-k left, not only what passes min-p.")
def top_p_before_min_p(answer, rng):
    logits = logits_of(*rng.shuffled([0.4, 0.3, 0.04, 0.04, 0.04, 0.04, 0.04, 0.04, 0.03, 0.03]))
    return drawn(answer, logits, SamplingParams(top_p=0.5, min_p=0.5), 20, rng)

@probe("sample", hidden=True, hint="Temperature comes before min-p: in the heat more tokens are near the likeliest.")
def temperature_before_min_p(answer, rng):
    logits = logits_of(*rng.shuffled([0.7, 0.2, 0.06, 0.04]))
    return drawn(answer, logits, SamplingParams(temperature=3.0, min_p=0.5), 20, rng)

@probe("sample", hidden=True,
       hint="+inf is as broken as NaN, and where all are −inf there is nothing to draw: NonFiniteLogits.")
def infinite_logits_are_errors(answer, rng):
    logits, nothing = rng.normal(7), torch.full((5,), -math.inf)
    fine = answer.sample(logits, SamplingParams(), 0.3, [])
    logits[rng.integers(0, 7)] = math.inf
    return [fine, *(raises(NonFiniteLogits, answer.sample, row, SamplingParams(), 0.3, []) for row in (logits, nothing))]

@probe("sample", hidden=True, points=2,
       hint="Sum in float64: in float32 the running sum over a large vocabulary misses 1, and u near 1 falls off its end.")
def a_large_vocabulary(answer, rng):
    logits = 2 * rng.normal(20_011)
    return [answer.sample(logits, SamplingParams(), u, []) for u in (rng.uniform(), 1 - 1e-9)]

@probe("sample", hidden=True, points=2, hint="All knobs at once, in the fixed order.")
def all_knobs_at_once(answer, rng):
    params = SamplingParams(temperature=1.7, top_k=20, top_p=0.8, min_p=0.1, repetition_penalty=1.3)
    logits, previous = 3 * rng.normal(53), rng.ints(30, 0, 53)
    return [answer.sample(logits, params, rng.uniform(), previous) for _ in range(20)]
