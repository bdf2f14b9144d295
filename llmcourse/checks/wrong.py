"""Named wrong answers: what authoring/NN_name/wrong.py is written with, and what `check` knows mistakes by."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from llmcourse.errors import AuthoringError


@dataclass(frozen=True)
class Wrong:
    """One wrong answer to one exercise.

    says: text that must appear in what the learner is told.
    why: one sentence: what this answer does wrong; shown to a learner whose results are the same.
    answer: the function or class; or, for an edited reference, None with `old` and `new`.
    """

    exercise: str
    name: str
    says: str
    why: str
    answer: object = None
    old: str = ""
    new: str = ""

    def build(self, source: str, namespace: dict) -> object:
        """The wrong function or class; `source` and `namespace` are the reference's, for one that edits it."""
        if self.answer is not None:
            return self.answer
        if source.count(self.old) != 1:
            raise AuthoringError(f"wrong answer {self.name!r}: {self.old!r} stands {source.count(self.old)} times in "
                                 f"the reference of {self.exercise!r}; it must stand there once")
        own = dict(namespace)
        exec(compile(source.replace(self.old, self.new), f"<wrong answer {self.name}>", "exec"), own)
        return own[self.exercise]


_MODULES: dict[str, list[Wrong]] = {}


def wrong(exercise: str, *, says: str) -> Callable:
    """Decorate a function or class that answers `exercise` wrongly; its docstring says what it does wrong."""

    def register(answer):
        why = (answer.__doc__ or "").strip()
        if not why:
            raise AuthoringError(f"wrong answer {answer.__name__!r} needs a docstring that says what it does wrong")
        _add(answer.__module__, Wrong(exercise, answer.__name__, says, " ".join(why.split()), answer))
        return answer

    return register


def edited(exercise: str, name: str, *, old: str, new: str, says: str, why: str) -> None:
    """Name a wrong answer that is the reference with `old` (which stands there once) replaced by `new`."""
    _add(sys._getframe(1).f_globals["__name__"], Wrong(exercise, name, says, why, old=old, new=new))


def load_wrong(file: Path) -> list[Wrong]:
    """The wrong answers that a wrong.py names, in order."""
    from .catalog import load_module

    return list(_MODULES.get(load_module(Path(file), "wrong"), []))


def _add(module: str, one: Wrong) -> None:
    ours = _MODULES.setdefault(module, [])
    if any(other.name == one.name for other in ours):
        raise AuthoringError(f"two wrong answers are named {one.name!r}: rename one")
    ours.append(one)
