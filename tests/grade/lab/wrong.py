"""Wrong answers of the small lab."""

from __future__ import annotations

from llmcourse.checks import edited, wrong


@wrong("twice", says="twice over")
def repeats(numbers):
    """It gives the list twice over."""
    return numbers * 2


edited("scores", "unscaled", old=" / len(q) ** 0.5", new="", says="scaled", why="It is not scaled.")
