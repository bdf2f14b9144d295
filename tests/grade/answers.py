"""Submissions to the small lab (tests/grade/lab)."""

from __future__ import annotations

import json

N_POINTS = 10
CORRECT = {
    "twice": "def twice(numbers):\n    return [n + n for n in numbers]",
    "scores": "def scores(q, k):\n    return [sum(a * b for a, b in zip(q, one)) * len(q) ** -0.5 for one in k]",
    "Bag": (
        "class Bag:\n    def __init__(self):\n        self.n = {}\n"
        "    def add(self, w):\n        self.n[w] = self.count(w) + 1\n"
        "    def count(self, w):\n        return self.n.get(w, 0)"
    ),
}


def notebook(**answers: str) -> str:
    """A submission with these answers, the others correct; one that is "" is left out."""
    sources = [source for source in {**CORRECT, **answers}.values() if source]
    cells = [
        {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
        for source in sources
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
