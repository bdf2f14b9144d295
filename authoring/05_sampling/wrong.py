"""Named wrong answers of lab 05."""

from __future__ import annotations

import math

import torch

from llmcourse.checks import edited, wrong

# ---- repetition_penalty ----

edited("repetition_penalty", "divides_negative_logits", old="torch.where(old > 0, old / penalty, old * penalty)",
       new="old / penalty",
       says="A negative logit is multiplied",
       why="It divides negative logits too, and so makes tokens that already occurred likelier.")


@wrong("repetition_penalty", says="once on a token")
def once_per_occurrence(logits, previous_ids, penalty):
    """It applies the penalty again for every time that a token occurred; it acts once."""
    penalised = logits.clone()
    for token in previous_ids:
        old = penalised[token]
        penalised[token] = old / penalty if old > 0 else old * penalty
    return penalised


@wrong("repetition_penalty", says="moves down")
def subtracts_the_penalty(logits, previous_ids, penalty):
    """It subtracts the penalty; this one divides and multiplies."""
    penalised = logits.clone()
    penalised[sorted(set(previous_ids))] -= penalty
    return penalised


edited("repetition_penalty", "writes_into_the_callers_logits", old="penalised = logits.clone()", new="penalised = logits",
       says="belong to the caller", why="It changes the logits that came in; copy them first.")

edited("repetition_penalty", "pushes_up", old="old / penalty, old * penalty", new="old * penalty, old / penalty",
       says="moves down", why="It multiplies positive logits and divides negative ones: what occurred gets likelier.")

edited("repetition_penalty", "punishes_the_others", old="penalised = logits.clone()",
       new="penalised = torch.where(logits > 0, logits / penalty, logits * penalty)",
       says="moves down", why="It pushes down all tokens, not only those that occurred.")

# ---- apply_temperature ----

edited("apply_temperature", "multiplies", old="logits.max()) / temperature", new="logits.max()) * temperature",
       says="at 0.5 all differences double", why="It multiplies by the temperature; divide.")


@wrong("apply_temperature", says="Take the largest logit away")
def overflows(logits, temperature):
    """It divides without taking the largest logit away, and a tiny temperature makes several logits inf."""
    return logits / temperature


@wrong("apply_temperature", says="at 0.5 all differences double")
def on_probabilities(logits, temperature):
    """It divides probabilities; the temperature divides logits, before softmax."""
    return logits.softmax(-1) / temperature


@wrong("apply_temperature", says="no -= and no /=")
def divides_in_place(logits, temperature):
    """It changes the logits that came in."""
    logits -= logits.max()
    logits /= temperature
    return logits


@wrong("apply_temperature", says="not the largest absolute value")
def by_the_largest_size(logits, temperature):
    """It takes away the largest absolute value, which is not the largest logit where all are negative."""
    finite = logits[logits > -math.inf]
    return (logits - finite.abs().max()) / temperature


@wrong("apply_temperature", says="Equal ones stay equal")
def one_winner_when_tiny(logits, temperature):
    """At a tiny temperature it gives all to one token, also where several are equally likely."""
    if temperature < 1e-6:
        return torch.full_like(logits, -math.inf).index_fill(0, logits.argmax(), 0.0)
    return (logits - logits.max()) / temperature

# ---- top_k_filter ----


@wrong("top_k_filter", says="A threshold keeps them all")
def keeps_ties_beyond_k(logits, k):
    """It keeps all that reach the k-th largest logit, and where logits are equal those are more than k."""
    if k == 0 or k >= len(logits):
        return logits
    return logits.masked_fill(logits < logits.topk(k).values[-1], -math.inf)


@wrong("top_k_filter", says="of equal ones the smaller ids stay")
def keeps_the_larger_ids(logits, k):
    """Of equal logits it keeps those with larger ids."""
    if k == 0:
        return logits
    best = logits.argsort(stable=True).flip(0)[:k]
    kept = torch.full_like(logits, -math.inf)
    kept[best] = logits[best]
    return kept


edited("top_k_filter", "zero_keeps_nothing", old="    if k == 0:\n        return logits\n", new="",
       says="k = 0 means no filter", why="With k = 0 it keeps nothing at all; 0 means that there is no filter.")

edited("top_k_filter", "zeros_for_the_others", old="-math.inf", new="0.0",
       says="all others become −inf", why="It sets the others to 0, which is a logit like any other; −inf means never.")


@wrong("top_k_filter", says="belong to the caller")
def cuts_in_place(logits, k):
    """It writes −inf into the logits that came in."""
    if k and k < len(logits):
        logits[logits.argsort(descending=True, stable=True)[k:]] = -math.inf
    return logits


@wrong("top_k_filter", says="no error")
def topk_needs_k_values(logits, k):
    """It fails, or filters wrongly, when k is over V: there are no k values then."""
    if k == 0:
        return logits
    if k > len(logits):
        return torch.full_like(logits, -math.inf)
    best = logits.argsort(descending=True, stable=True)[:k]
    return torch.full_like(logits, -math.inf).index_copy(0, best, logits[best])

# ---- top_p_filter ----

edited("top_p_filter", "drops_the_crossing_token", old="(before < p)", new="(before + probabilities <= p)",
       says="The token that crosses p stays", why="It drops the token that crosses p; what it keeps sums to less than p.")

edited("top_p_filter", "one_is_not_everything", old="    if p >= 1:", new="    if p > 1:",
       says="p = 1 keeps every token",
       why="It adds up at p = 1 too, and cuts what comes after the sum has been rounded to 1; 1 means no filter.")

edited("top_p_filter", "zero_means_off", old="    if p >= 1:", new="    p = p or 1.0\n    if p >= 1:",
       says="Python takes 0 for false", why="It takes p = 0 for no filter; 0 leaves the likeliest token alone.")

edited("top_p_filter", "in_order_of_ids", old="logits.argsort(descending=True, stable=True)",
       new="torch.arange(len(logits))",
       says="The token that crosses p stays", why="It adds up in order of ids; go from the likeliest downwards.")

edited("top_p_filter", "one_more_when_reached", old="(before < p)", new="(before <= p)",
       says="reached p exactly", why="It takes one token more when the sum has reached p exactly.")

edited("top_p_filter", "unstable_ties", old="logits.argsort(descending=True, stable=True)",
       new="logits.argsort(stable=True).flip(0)",
       says="stable=True", why="Of equal tokens it takes the larger ids first.")


@wrong("top_p_filter", says="The token that crosses p stays")
def likelier_than_p(logits, p):
    """It keeps the tokens that are likelier than p; top-p adds up."""
    probabilities = logits.softmax(-1)
    return logits.masked_fill((probabilities < p) & (probabilities < probabilities.max()), -math.inf)


@wrong("top_p_filter", says="belong to the caller")
def cuts_the_callers_row(logits, p):
    """It writes −inf into the logits that came in."""
    if p < 1:
        order = logits.argsort(descending=True, stable=True)
        probabilities = logits[order].softmax(-1)
        before = probabilities.cumsum(-1) - probabilities
        logits[order[max(1, int((before < p).sum())):]] = -math.inf
    return logits

# ---- min_p_filter ----

edited("min_p_filter", "relative_to_one", old="min_p * probabilities.max()", new="min_p",
       says="not min_p itself", why="It compares with min_p itself; the bar is min_p times the largest probability.")

edited("min_p_filter", "on_logits", old="probabilities = logits.softmax(-1)", new="probabilities = logits",
       says="the probability of the likeliest", why="It compares logits; take probabilities.")

edited("min_p_filter", "cuts_what_is_on_the_bar", old="probabilities < min_p", new="probabilities <= min_p",
       says="a token on the bar stays", why="It cuts tokens that lie on the bar, at min_p = 1 even the likeliest.")

edited("min_p_filter", "masks_in_place", old="logits.masked_fill(", new="logits.masked_fill_(",
       says="without the _", why="It writes −inf into the logits that came in.")

edited("min_p_filter", "returns_probabilities",
       old="return logits.masked_fill(probabilities < min_p * probabilities.max(), -math.inf)",
       new="return probabilities.masked_fill(probabilities < min_p * probabilities.max(), 0.0)",
       says="the probability of the likeliest", why="It returns probabilities; filters take logits and give logits.")

# ---- sample ----

TEMPERATURE = "    logits = apply_temperature(logits, params.temperature)\n"
TOP_K = "    logits = top_k_filter(logits, params.top_k)\n"
TOP_P = "    logits = top_p_filter(logits, params.top_p)\n"
MIN_P = "    logits = min_p_filter(logits, params.min_p)\n"
PENALTY = "    logits = repetition_penalty(logits, previous_ids, params.repetition_penalty)\n"
GREEDY = "    if params.temperature == 0:\n        return int(logits.argmax())\n"
RUNNING = "    running = logits.double().softmax(-1).cumsum(-1)\n"
DRAW = "    return int((running <= u * running[-1]).sum())"

edited("sample", "temperature_after_top_p", old=TEMPERATURE + TOP_K + TOP_P, new=TOP_K + TOP_P + TEMPERATURE,
       says="Temperature comes before top-p", why="It filters before the temperature, and the temperature comes first.")

edited("sample", "temperature_at_the_end", old=TEMPERATURE + TOP_K + TOP_P + MIN_P, new=TOP_K + TOP_P + MIN_P + TEMPERATURE,
       says="Temperature comes before top-p",
       why="It applies the temperature last; the filters must see what is drawn from.")

edited("sample", "not_renormalised", old=TEMPERATURE + TOP_K + TOP_P + MIN_P + RUNNING + DRAW,
       new=TEMPERATURE + "    whole = logits.double().softmax(-1)\n" + TOP_K + TOP_P + MIN_P
           + "    running = torch.where(logits > -math.inf, whole, 0.0).cumsum(-1)\n"
             "    return min(int((running <= u).sum()), int((logits > -math.inf).nonzero()[-1]))",
       says="add up to 1 again",
       why="It cuts tokens without making the rest add up to 1 again, so a large u always falls on the last one.")

edited("sample", "wrong_side_of_a_boundary", old="(running <= u * running[-1])", new="(running < u * running[-1])",
       says="u on a boundary",
       why="Where u lies on a boundary, and at u = 0, it takes the token before; the sum must exceed u.")

edited("sample", "largest_id_of_equal_ones", old="return int(logits.argmax())",
       new="return int((logits == logits.max()).nonzero()[-1])",
       says="of equal largest logits the smallest id", why="Greedy, it takes the largest id of equal logits.")

edited("sample", "argmin", old="logits.argmax()", new="logits.argmin()",
       says="Temperature 0 is greedy", why="At temperature 0 it takes the smallest logit.")

edited("sample", "zero_top_p_means_off", old="top_p_filter(logits, params.top_p)",
       new="top_p_filter(logits, params.top_p or 1.0)",
       says="top_p = 0", why="It takes top_p = 0 for no filter, since Python takes 0 for false.")

edited("sample", "lets_nan_through", old="    if not math.isfinite(largest):", new="    if largest == math.inf:",
       says="NonFiniteLogits", why="It lets NaN through, and a broken model goes unseen.")

edited("sample", "looks_for_nan_only", old="    if not math.isfinite(largest):", new="    if math.isnan(largest):",
       says="as broken as NaN", why="It looks for NaN alone; +inf, or nothing but −inf, cannot be drawn from either.")

edited("sample", "greedy_forgets_the_penalty", old=PENALTY + GREEDY, new=GREEDY + PENALTY,
       says="counts for greedy", why="At temperature 0 it forgets the repetition penalty.")

edited("sample", "penalty_after_temperature", old=PENALTY + GREEDY + TEMPERATURE,
       new=GREEDY.replace("logits.argmax", PENALTY.strip().partition(" = ")[2] + ".argmax") + TEMPERATURE + PENALTY,
       says="before the temperature", why="It applies the penalty after the temperature, when all logits are negative.")

edited("sample", "top_p_before_top_k", old=TOP_K + TOP_P, new=TOP_P + TOP_K,
       says="Top-k comes before top-p", why="It applies top-p before top-k.")

edited("sample", "min_p_before_top_p", old=TOP_P + MIN_P, new=MIN_P + TOP_P,
       says="Top-p comes before min-p", why="It applies min-p before top-p.")

edited("sample", "sums_in_float32", old=RUNNING + DRAW,
       new="    running = logits.softmax(-1).cumsum(-1)\n    return int((running <= u).sum())",
       says="Sum in float64", why="It sums in float32, and does not notice that the sum misses 1.")


@wrong("sample", says="Do not sort")
def draws_from_the_likeliest_down(logits, params, u, previous_ids):
    """It lays out the stripe from the likeliest token down; the order is that of ids."""
    if not math.isfinite(logits.max().item()):
        from llmcourse.errors import NonFiniteLogits

        raise NonFiniteLogits("not finite")
    if params.temperature == 0:
        return int(logits.argmax())
    probabilities, ids = (logits / params.temperature).double().softmax(-1).sort(descending=True, stable=True)
    return int(ids[min(int((probabilities.cumsum(-1) <= u).sum()), len(ids) - 1)])


@wrong("sample", says="in order of ids")
def ignores_u(logits, params, u, previous_ids):
    """It draws with luck of its own; the number u is given, so that a seed can repeat a run."""
    if not math.isfinite(logits.max().item()):
        from llmcourse.errors import NonFiniteLogits

        raise NonFiniteLogits("not finite")
    if params.temperature == 0:
        return int(logits.argmax())
    return int(torch.multinomial((logits / params.temperature).softmax(-1), 1))


@wrong("sample", says="who may still need them")
def works_in_the_callers_row(logits, params, u, previous_ids):
    """It changes the logits that came in, and the caller's row is spoilt."""
    if not math.isfinite(logits.max().item()):
        from llmcourse.errors import NonFiniteLogits

        raise NonFiniteLogits("not finite")
    for token in set(previous_ids):
        logits[token] *= params.repetition_penalty ** (-1 if logits[token] > 0 else 1)
    if params.temperature == 0:
        return int(logits.argmax())
    logits -= logits.max()
    logits /= params.temperature
    order = logits.argsort(descending=True, stable=True)
    if params.top_k:
        logits[order[params.top_k:]] = -math.inf
    probabilities = logits[order].softmax(-1)
    if params.top_p < 1:
        before = probabilities.cumsum(-1) - probabilities
        logits[order[max(1, int((before < params.top_p).sum())):]] = -math.inf
    probabilities = logits.softmax(-1)
    logits[probabilities < params.min_p * probabilities.max()] = -math.inf
    running = logits.double().softmax(-1).cumsum(-1)
    return int((running <= u * running[-1]).sum())


edited("top_p_filter", "places_for_ids", old="kept[order[:n_kept]] = logits[order[:n_kept]]",
       new="kept[:n_kept] = logits[:n_kept]", says="back to ids",
       why="What it found out about places in the sorted row it applies to the unsorted one. Map places back to ids: place i "
           "of the sorted row is the token order[i].")

edited("top_p_filter", "returns_the_sorted_row", old="kept[order[:n_kept]] = logits[order[:n_kept]]",
       new="kept[:n_kept] = logits[order[:n_kept]]", says="back to ids",
       why="It returns the row as it was sorted. Put each logit back to ids: place i of the sorted row is the token order[i].")

edited("sample", "running_sum_in_float32", old="running = logits.double().softmax(-1).cumsum(-1)\n"
       "    return int((running <= u * running[-1]).sum())",
       new="running = logits.softmax(-1).cumsum(-1)\n    return int((running > u).nonzero()[0])", says="never exceeds",
       why="It sums in float32. There a u close to 1 becomes 1, the running sum never exceeds it, and no token is left to take: "
           "sum in float64, and compare with u times the last sum.")
