"""Probes of lab 00: the loop that turns a next-token predictor into a text generator."""

from __future__ import annotations

from llmcourse.checks import exercise, probe

exercise(
    "generate_loop",
    hints=(
        "Do by hand what the lesson did: ask for the scores, take the best id, put it at the end, ask again. What "
        "must be true for the loop to go on?",
        "next id = the position of the largest score; text = prompt + everything generated so far; stop when "
        "max_new ids were generated, or when the id just generated is in stop_ids.",
        "Start with an empty list of new ids. While it is shorter than max_new: call next_logits on a new list, "
        "ids + new ids; find the largest score's position, max(range(len(scores)), key=scores.__getitem__) for "
        "example; append it; leave the loop if it is a stop id. Return the new ids.",
    ),
    forbids=("llmcourse.engine", "llmcourse.model", "transformers"),
)

VOCAB = 11


class Scripted:
    """A stand-in for a model: scores [VOCAB] from a table keyed by the whole text, so the text must be right.

    seen: the ids it was called with, call by call. script: ids that it favours, call by call, where given.
    """

    def __init__(self, rng, script=(), low: float = -9.0, high: float = 9.0):
        self.weights = [rng.uniform(low=0.1, high=0.9) for _ in range(VOCAB)]
        self.script, self.low, self.high = list(script), low, high
        self.seen: list[list[int]] = []

    def __call__(self, ids):
        self.seen.append(list(ids))
        scores = [self._score(ids, token) for token in range(VOCAB)]
        if len(self.seen) <= len(self.script):
            scores[self.script[len(self.seen) - 1]] = self.high + 1
        return scores

    def _score(self, ids, token: int) -> float:
        """A number in [low, high) that depends on every id and its place."""
        mixed = self.weights[token]
        for place, each in enumerate(ids):
            mixed = (mixed * 3.7 + self.weights[each % VOCAB] * (place + 2)) % 1.0
        return self.low + (self.high - self.low) * mixed


@probe("generate_loop", hint="The next id is the position of the largest score in the list that next_logits returns.")
def takes_the_best_id(answer, rng):
    return [answer.generate_loop(Scripted(rng), rng.ints(4, 0, VOCAB), 1, set()) for _ in range(6)]


@probe("generate_loop", hint="Of equal scores the smallest id wins: keep the first, replace it only by a larger score.")
def of_equal_scores_the_smallest_id(answer, rng):
    scores = [rng.uniform(low=-3, high=0) for _ in range(VOCAB)]
    for place in rng.sample(range(VOCAB), 3):
        scores[place] = 2.5
    return answer.generate_loop(lambda ids: scores, [1, 2], 1, set())


@probe("generate_loop", points=2,
       hint="Each call gets the whole text so far: the prompt and every id generated until then.")
def every_call_sees_the_whole_text(answer, rng):
    model = Scripted(rng)
    new = answer.generate_loop(model, rng.ints(3, 0, VOCAB), 5, set())
    return [new, model.seen]


@probe("generate_loop", points=2, hint="max_new counts the new ids only, however long the prompt is.")
def max_new_counts_new_ids(answer, rng):
    return [len(answer.generate_loop(Scripted(rng), rng.ints(n, 0, VOCAB), 6, set())) for n in (1, 6, 9)]


@probe("generate_loop", points=2, hint="A stop id ends the loop, and is the last of the ids that are returned.")
def a_stop_id_ends_the_loop(answer, rng):
    script = [3, 5, 2, 7, 4]
    return [answer.generate_loop(Scripted(rng, script), [1, 9], 5, {script[n]}) for n in (0, 2, 4)]


@probe("generate_loop", hint="With max_new = 0 there is nothing to do: return an empty list without calling the model.")
def nothing_to_generate(answer, rng):
    model = Scripted(rng)
    return [answer.generate_loop(model, rng.ints(4, 0, VOCAB), 0, {1}), model.seen]


@probe("generate_loop", hidden=True, hint="There may be several stop ids, and any of them ends the loop.")
def any_of_several_stop_ids(answer, rng):
    script = rng.sample(range(VOCAB), 6)
    stops = set(script[2:5])
    return [answer.generate_loop(Scripted(rng, script), [4], 6, each) for each in (stops, {script[5]})]


@probe("generate_loop", points=2,
       hint="Only a newly generated id can stop the loop; a stop id in the prompt is ordinary.")
def stop_id_in_the_prompt(answer, rng):
    return answer.generate_loop(Scripted(rng, [3, 5, 6, 8]), [2, 7, 2], 4, {2, 7})


@probe("generate_loop", hidden=True,
       hint="A call of the model is the expensive part: one for each new id, none after the last.")
def one_call_for_each_new_id(answer, rng):
    counts = []
    for stops in (set(), {5}):
        model = Scripted(rng, [3, 5, 6, 8])
        answer.generate_loop(model, [1, 2], 4, stops)
        counts.append(len(model.seen))
    return counts


@probe("generate_loop", hidden=True, hint="Scores may all be negative: do not start the search for the largest from 0.")
def all_scores_negative(answer, rng):
    return answer.generate_loop(Scripted(rng, low=-90.0, high=-40.0), rng.ints(5, 0, VOCAB), 4, set())


@probe("generate_loop", hidden=True, hint="The prompt's list belongs to the caller: work on a list of your own.")
def prompt_stays_as_it_was(answer, rng):
    ids = rng.ints(4, 0, VOCAB)
    return [answer.generate_loop(Scripted(rng), ids, 3, set()), ids]
