"""A small course in a temporary folder, made by `author new` and built: what the workbook's tests and the gates run on."""

from __future__ import annotations

import json
from pathlib import Path

from llmcourse.workbook import author
from llmcourse.workbook.course import Course

NAME = "90_fake"

MORE_LAB = '''
# %% [markdown]
# ### 90.2 A running total
# *difficulty 2/5 · 5 minutes · unlocks: nothing in the engine*

# %% ex="Total"
class Total:
    """Adds up what it is given.

    `add(number)` takes one integer and returns the sum of all so far.

    Example: t = Total(); t.add(2) is 2; t.add(3) is 5.
    """

    ### BEGIN SOLUTION
    def __init__(self):
        self.sum = 0

    def add(self, number: int) -> int:
        self._keep(number)
        return self.sum

    def _keep(self, number):
        self.sum = self.sum + number
    ### END SOLUTION

# %% check="Total"
check("90.Total", Total=Total)
'''

MORE_PROBES = '''
exercise("Total", hints=("Where is the sum kept?", "sum = sum + number", "Start at 0 in __init__."))


@probe("Total", hint="Every object keeps a sum of its own.")
def sums_apart(answer, rng):
    one, two = answer.Total(), answer.Total()
    return [one.add(rng.integers(1, 9)), two.add(rng.integers(1, 9)), one.add(rng.integers(1, 9))]


@probe("Total", hidden=True, hint="Negative numbers count too.")
def negative_numbers(answer, rng):
    total = answer.Total()
    return [total.add(n) for n in rng.ints(5, -9, 0)]
'''

MORE_WRONG = '''
@wrong("Total", says="a sum of its own")
class SharedSum:
    """It keeps one sum for all objects."""

    sums = []

    def add(self, number):
        self.sums.append(number)
        return sum(self.sums)


@wrong("Total", says="only the last number")
class LastNumber:
    """It returns only the last number."""

    def add(self, number):
        return number


edited("Total", "loses_signs", old="self.sum + number", new="self.sum + abs(number)", says="Negative numbers", why="It drops signs.")
'''


def write(root: Path) -> Course:
    """The sources of the fake course: the skeleton's exercise, and a class."""
    author.new(NAME, root=root)
    for part, more in (("lab", MORE_LAB), ("wrong", MORE_WRONG)):
        append(root / "authoring" / NAME / f"{part}.py", more)
    append(root / "checks" / f"{NAME}.py", MORE_PROBES)
    return Course(root)


def append(file: Path, text: str) -> None:
    """Add text to the end of a file."""
    file.write_text(file.read_text("utf-8") + text, "utf-8")


def answered(lab: Path, target: Path, **answers: str) -> Path:
    """A copy of a lab with these sources in its answer cells."""
    notebook = json.loads(lab.read_text("utf-8"))
    for cell in notebook["cells"]:
        mark = cell["metadata"].get("llmcourse", {})
        if mark.get("role") == "answer" and mark["exercise"] in answers:
            cell["source"] = answers[mark["exercise"]]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(notebook), "utf-8")
    return target
