"""Probes of lab 05: choosing the next token. What comes before the draw stands in `sampling_filters`."""

from __future__ import annotations

import math

import torch

from llmcourse.checks import exercise, probe, raises
from llmcourse.engine.sampling import SamplingParams
from llmcourse.errors import NonFiniteLogits

from .sampling_filters import OWN_WORK
from .sampling_inputs import HINTS, fits, logits_of

DRAWS = 300
LAST_U = 1 - 2**-53  # the largest uniform number below 1

exercise("sample", hints=HINTS["sample"], forbids=OWN_WORK)

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
