"""One caller at a time in an engine."""

from __future__ import annotations

import threading

from llmcourse.errors import EngineBusy


class Turn:
    """A lock that threads wait for, and that tells a thread which already has it: `with turn: …`.

    Raises EngineBusy where the same thread comes a second time: it would wait for itself.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None

    def __enter__(self) -> None:
        if self._owner == threading.get_ident():
            raise EngineBusy(
                "this engine is in the middle of a step, and a stage, tokenizer or cache that it uses called it again; "
                "take a second Engine for that"
            )
        self._lock.acquire()
        self._owner = threading.get_ident()

    def __exit__(self, *_exception) -> None:
        self._owner = None
        self._lock.release()

    def now(self) -> bool:
        """Take the turn if it is free, without waiting; whether it was. `with` does not end it: `end` does."""
        taken = self._lock.acquire(blocking=False)
        if taken:
            self._owner = threading.get_ident()
        return taken

    def end(self) -> None:
        """End a turn that `now` took."""
        self.__exit__()
