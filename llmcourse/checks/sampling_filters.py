"""Probes of lab 05: the penalty, the temperature and the filters."""

from __future__ import annotations

import math

import torch

from llmcourse.checks import exercise, probe

from .sampling_inputs import HINTS, logits_of, shared_places

OWN_WORK = ("llmcourse.ops", "transformers")

for name in ("repetition_penalty", "apply_temperature", "top_k_filter", "top_p_filter", "min_p_filter"):
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
