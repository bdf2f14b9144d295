"""What a stage of the engine is that a lab unlocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llmcourse.ops import Parts

Use = Callable[[str, Callable], Callable]  # (exercise, learner's function) → the function, counted and guarded


@dataclass(frozen=True)
class Stage:
    """A stage of the engine that a lab unlocks.

    Args:
        name: as shown to the learner.
        exercises: all of them must pass before the stage is theirs, as "NN.name".
        install: (parts, the exercises' objects by name, use) → parts with the learner's code in that stage.
        note: how the learner's code is used, shown once it was called; "" where there is nothing to say.
        replaces: entries of the table that `install` replaces; while the stage is not the learner's, its calls are theirs.
    """

    name: str
    exercises: tuple[str, ...]
    install: Callable[[Parts, dict[str, object], Use], Parts]
    replaces: tuple[str, ...] = ()
    note: str = ""
