"""Named wrong answers of lab 00."""

from __future__ import annotations

from llmcourse.checks import edited, wrong

edited("generate_loop", "counts_the_prompt", old="len(new) < max_new", new="len(ids) + len(new) < max_new",
       says="max_new counts the new ids only", why="It counts the prompt's ids towards max_new.")

edited("generate_loop", "feeds_the_last_id_only", old="next_logits(ids + new)", new="next_logits((ids + new)[-1:])",
       says="the whole text so far", why="It shows the model only the last id, so everything before is forgotten.")

edited("generate_loop", "feeds_the_new_ids_only", old="next_logits(ids + new)", new="next_logits(new or ids)",
       says="the prompt and every id", why="After the first id it forgets the prompt.")

edited("generate_loop", "never_appends", old="next_logits(ids + new)", new="next_logits(ids)",
       says="every id generated until then",
       why="It asks about the same prompt again and again: the new ids are never shown to the model.")

edited("generate_loop", "last_of_equal_scores", old="scores.index(max(scores))",
       new="len(scores) - 1 - scores[::-1].index(max(scores))",
       says="the smallest id wins", why="Of equal scores it takes the last one.")

edited("generate_loop", "never_stops", old="if new[-1] in stop_ids", new="if new[-1] == stop_ids",
       says="A stop id ends the loop", why="It compares an id with the whole set, which is never equal.")


@wrong("generate_loop", says="is the last of the ids that are returned")
def drops_the_stop_id(next_logits, ids, max_new, stop_ids):
    """It leaves the loop before it keeps the stop id, so a reader of the result cannot see why it ended."""
    new = []
    while len(new) < max_new:
        scores = next_logits(ids + new)
        best = scores.index(max(scores))
        if best in stop_ids:
            break
        new.append(best)
    return new


@wrong("generate_loop", says="a stop id in the prompt is ordinary")
def stops_at_the_prompt(next_logits, ids, max_new, stop_ids):
    """It looks for a stop id in the whole text, so one in the prompt ends the loop at once."""
    new = []
    while len(new) < max_new:
        scores = next_logits(ids + new)
        new.append(scores.index(max(scores)))
        if any(each in stop_ids for each in ids + new):
            break
    return new


@wrong("generate_loop", says="do not start the search for the largest from 0")
def largest_from_zero(next_logits, ids, max_new, stop_ids):
    """It looks for a score above 0, and finds none where all are negative."""
    new = []
    while len(new) < max_new:
        best, largest = 0, 0.0
        for token, score in enumerate(next_logits(ids + new)):
            if score > largest:
                best, largest = token, score
        new.append(best)
        if best in stop_ids:
            break
    return new


@wrong("generate_loop", says="the caller")
def grows_the_prompt(next_logits, ids, max_new, stop_ids):
    """It appends to the list that the caller passed, so the caller's prompt grows."""
    start = len(ids)
    while len(ids) - start < max_new:
        scores = next_logits(ids)
        ids.append(scores.index(max(scores)))
        if ids[-1] in stop_ids:
            break
    return ids[start:]


@wrong("generate_loop", says="none after the last")
def one_call_too_many(next_logits, ids, max_new, stop_ids):
    """It asks the model once more before it notices that it is done."""
    new = []
    scores = next_logits(ids) if max_new else []
    while len(new) < max_new:
        new.append(scores.index(max(scores)))
        scores = next_logits(ids + new)
        if new[-1] in stop_ids:
            break
    return new


@wrong("generate_loop", says="new ids only")
def returns_the_prompt_too(next_logits, ids, max_new, stop_ids):
    """It returns the prompt and the new ids; the result is the new ids only."""
    text = list(ids)
    for _ in range(max_new):
        scores = next_logits(text)
        text.append(scores.index(max(scores)))
        if text[-1] in stop_ids:
            break
    return text
