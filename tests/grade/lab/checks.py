"""Probes of the small lab."""

from __future__ import annotations

from llmcourse import given
from llmcourse.checks import exercise, probe

HINTS = ("a", "b", "c")
exercise("twice", hints=HINTS, forbids=("llmcourse.text", "operator.mul"))
exercise("scores", hints=HINTS)
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


def vectors(rng, n, size):
    return [[rng.uniform(low=-1, high=1) for _ in range(size)] for _ in range(n)]


@probe("scores", points=2, hint="Scale by the square root of the head size.")
def scale(answer, rng):
    return answer.scores(vectors(rng, 1, 8)[0], vectors(rng, 5, 8))


@probe("scores", hidden=True, hint="One query against many keys.")
def many_keys(answer, rng):
    return answer.scores(vectors(rng, 1, 6)[0], vectors(rng, 200, 6))


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
