"""A probe of one exercise, `total`, and answers to it written as a learner's cell."""

from __future__ import annotations

import linecache

from llmcourse.checks import Answer, Probe
from llmcourse.checks.probe import Tolerance

REFERENCE = Answer({"total": sum})


def total_of_three(answer, rng):
    return answer.total(rng.ints(3, 0, 100))


def a_probe(function=total_of_three, **changes) -> Probe:
    fields = dict(lesson="01", exercise="total", name=function.__name__, function=function, points=2, hint="Add them up.",
                  hidden=False, tolerance=Tolerance(), seconds=5.0)
    return Probe(**{**fields, **changes})


def written(source: str) -> Answer:
    """The names that a learner's cell defines."""
    linecache.cache["<cell>"] = (len(source), None, source.splitlines(keepends=True), "<cell>")
    namespace: dict = {}
    exec(compile(source, "<cell>", "exec"), namespace)
    return Answer({k: v for k, v in namespace.items() if k != "__builtins__"})
