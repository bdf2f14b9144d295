"""Where the course's files and the learner's own are: `course()` and `work_folder()`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from llmcourse import checks
from llmcourse.errors import UnknownLesson

from .notebook import Notebook, defined_in, read_notebook

PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Course:
    """A folder with exercises/ and solutions/ (built labs), and authoring/NN_name/ with wrong.py.

    A course other than the package's own may bring its probes along, as checks/NN_name.py.
    """

    root: Path

    def labs(self) -> list[str]:
        """Full names of the labs that exist, in order: ["00_one_prompt", "01_tokenizer", …]."""
        return sorted(p.stem for p in (self.root / "exercises").glob("[0-9][0-9]_*.ipynb"))

    def name(self, number: str) -> str:
        """"01_tokenizer" for "01", "1", "tokenizer" or "01_tokenizer"; raises UnknownLesson when there is no such lab."""
        asked = str(number)
        known = {name: lab for lab in self.labs() for name in (lab, lab[:2], lab[3:], str(int(lab[:2])))}
        found = known.get(asked)
        if found is None:
            raise UnknownLesson(f"there is no lab {asked!r}; there are: {', '.join(self.labs()) or 'none yet'}")
        return found

    def lab_and_exercise(self, asked: str) -> tuple[str, str]:
        """("01_tokenizer", "encode") for "01.encode" or "tokenizer.encode"; ("01_tokenizer", "") for a whole lab.

        Raises UnknownLesson for anything else.
        """
        lab, dot, one = str(asked).partition(".")
        name = self.name(lab)
        if dot:
            self.lesson(name).of(one)
        return name, one

    def lesson_of(self, notebook: Notebook) -> str:
        """Number of the lesson that a notebook is of, "" where nothing says it.

        The builder's mark says it, else the exercises that its cells answer, else the file's name.
        """
        if notebook.marked:
            return notebook.marked
        mine = set(defined_in(notebook))
        n_answered = {lab[:2]: len(mine & _exercises(self.exercise(lab))) for lab in self.labs()}
        most = max(n_answered.values(), default=0)
        best = [number for number, n in n_answered.items() if n == most > 0]
        return best[0] if len(best) == 1 else notebook.lesson

    def exercise(self, number: str) -> Path:
        """The untouched lab."""
        return self.root / "exercises" / f"{self.name(number)}.ipynb"

    def solution(self, number: str) -> Path:
        """The lab with its solutions, which are the reference of the probes."""
        return self.root / "solutions" / f"{self.name(number)}.ipynb"

    def wrong(self, number: str) -> Path:
        """The lab's named wrong answers."""
        return self.root / "authoring" / self.name(number) / "wrong.py"

    def lesson(self, number: str) -> checks.Lesson:
        """The lab's exercises and probes."""
        return self.lesson_named(self.name(number))

    def lesson_named(self, name: str) -> checks.Lesson:
        """The same for a lesson whose lab may not be built yet; `name` as in "01_tokenizer"."""
        own = self.root / "checks" / f"{name}.py"
        return checks.load_lesson_file(own, name[:2], name[3:]) if own.is_file() else checks.lesson(name[:2])


@lru_cache(maxsize=None)
def _exercises(lab: Path) -> frozenset[str]:
    return frozenset(one["name"] for one in read_notebook(lab).metadata.get("exercises", []))


def course() -> Course:
    """The course in use: LLMCOURSE_ROOT if it is set, else the repository, else what the installed package carries."""
    if os.environ.get("LLMCOURSE_ROOT"):
        return Course(Path(os.environ["LLMCOURSE_ROOT"]))
    repository = PACKAGE.parent
    return Course(repository if (repository / "authoring").is_dir() else PACKAGE / "data" / "course")


def work_folder() -> Path:
    """The learner's own copies: LLMCOURSE_WORK, else work/ beside exercises/ (searched upwards), else ./work.

    The folder need not exist yet.
    """
    if os.environ.get("LLMCOURSE_WORK"):
        return Path(os.environ["LLMCOURSE_WORK"]).expanduser()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if folder.name == "work" and _has_labs(folder):
            return folder
        if (folder / "exercises").is_dir() and (folder / "start.py").is_file():
            return folder / "work"
    return here / "work"


def _has_labs(folder: Path) -> bool:
    return any(folder.glob("[0-9][0-9]_*.ipynb"))


def split_exercise(exercise: str) -> tuple[str, str]:
    """("01", "merge_pair") of "01.merge_pair"; raises UnknownLesson for anything else."""
    match = re.fullmatch(r"(\d\d)\.(\w+)", str(exercise))
    if not match:
        raise UnknownLesson(f"{exercise!r} is not an exercise; write it as lesson and name, "
                            "for example '01.merge_pair'")
    return match[1], match[2]
