"""What a notebook's code finds in a kernel, for cells that run outside of one: `get_ipython()` and `display`."""

from __future__ import annotations

import time
from types import SimpleNamespace

from .ipython_lines import without_options


class Shell:
    """Answers the calls that IPython's lines become, as far as a namespace is all there is: no command is run."""

    def __init__(self, user_ns: dict[str, object]):
        self.user_ns = user_ns

    def install(self) -> None:
        """Give the namespace the names that a kernel gives it."""
        self.user_ns.update(get_ipython=lambda: self, display=_display)

    def run_line_magic(self, name: str, line: str, *more: object) -> object:
        """%time gives its expression's value, %timeit -o its result; other magics give None."""
        if name == "time":
            return eval(without_options(line), self.user_ns)
        if name == "timeit" and "-o" in line.split():
            return self._timed(without_options(line))
        return None

    def run_cell_magic(self, name: str, line: str, body: str) -> None:
        """%%capture NAME sets NAME to what was caught, which is nothing here; any other does nothing."""
        words = [word for word in line.split() if not word.startswith("-")]
        if name == "capture" and words:
            self.user_ns[words[-1]] = SimpleNamespace(stdout="", stderr="", outputs=[], show=lambda: None)

    def getoutput(self, command: str, *more: object) -> list[str]:
        """`files = !ls`: no lines."""
        return []

    def system(self, command: str) -> None:
        """`!command`: nothing."""

    def _timed(self, statement: str) -> SimpleNamespace:
        """One run of a statement, with the attributes of IPython's TimeitResult."""
        started = time.perf_counter()
        exec(statement, self.user_ns)
        seconds = time.perf_counter() - started
        return SimpleNamespace(average=seconds, best=seconds, worst=seconds, stdev=0.0, loops=1, repeat=1,
                               all_runs=[seconds], timings=[seconds], compile_time=0.0)


def _display(*objects: object, **options: object) -> None:
    """Shows nothing: nobody looks."""
