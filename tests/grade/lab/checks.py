"""Probes of the small lab."""

from __future__ import annotations

from llmcourse import given
from llmcourse.checks import exercise, probe

HINTS = ("a", "b", "c")
exercise("twice", hints=HINTS, forbids=("llmcourse.text", "operator.mul"))
exercise("scores", hints=HINTS, forbids=("torch.nn.functional.scaled_dot_product_attention",))
exercise("Bag", hints=HINTS)


@probe("twice", points=2, hint="Each number doubles.")
def doubles_each_number(answer, rng):
    return answer.twice(rng.ints(rng.integers(3, 9), -50, 50))


@probe("twice", hint="The list that came in stays as it was.")
def input_stays(answer, rng):
    numbers = rng.ints(5, 1, 50)
    return [answer.twice(numbers), numbers]


@probe("twice", hidden=True, hint="No numbers in, no numbers out.")
def empty_list(answer, rng):
    return [answer.twice([]), answer.twice(rng.ints(2, 0, 9))]


@probe("scores", points=2, hint="Scale by the square root of the head size.")
def scale(answer, rng):
    return answer.scores(rng.normal(3, 8), rng.normal(5, 8))


@probe("scores", hidden=True, hint="One query against many keys.")
def one_query(answer, rng):
    return answer.scores(rng.normal(1, 6), rng.normal(200, 6))


@probe("Bag", points=2, hint="A word counts as often as it was added.")
def counts_repeats(answer, rng):
    bag, words = answer.Bag(), rng.words(30, 4)
    [bag.add(word) for word in words]
    return [bag.count(word) for word in words]


@probe("Bag", hidden=True, hint="Any words will do, doubled numbers too.")
def numbers_in_a_bag(answer, rng):
    bag, numbers = answer.Bag(), given.twice(rng.ints(9, 0, 4))
    [bag.add(n) for n in numbers]
    return [bag.count(n) for n in numbers]
