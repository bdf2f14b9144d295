"""Which lessons exist, and the exercises and probes of one: `lesson("01")`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from llmcourse.errors import AuthoringError, UnknownLesson

from .probe import Exercise, Probe, registered_by_lesson

LESSONS = {
    "00": "one_prompt",
    "01": "tokenizer",
    "02": "embeddings_and_rope",
    "03": "attention",
    "04": "transformer",
    "05": "sampling",
    "06": "prefill_and_decode",
    "07": "kv_cache",
    "08": "smaller_cache",
    "09": "quantization",
    "10": "gptq_and_awq",
    "11": "paged_attention",
    "12": "continuous_batching",
    "13": "speculative_decoding",
    "14": "gpu_kernels",
    "15": "compressed_attention",
    "16": "serving",
    "17": "capstone",
}


@dataclass(frozen=True)
class Lesson:
    """One lesson's exercises, in the order of the lab, and all their probes."""

    number: str
    name: str
    exercises: dict[str, Exercise]
    probes: tuple[Probe, ...]

    def of(self, exercise: str, *, hidden: bool | None = None) -> tuple[Probe, ...]:
        """The probes of one exercise; `hidden=False` only those that a learner may see, `True` only the others."""
        if exercise not in self.exercises:
            names = ", ".join(self.exercises)
            raise UnknownLesson(f"lesson {self.number} has no exercise {exercise!r}; it has: {names}")
        mine = (p for p in self.probes if p.exercise == exercise)
        return tuple(p for p in mine if hidden is None or p.hidden == hidden)

    def files(self) -> set[Path]:
        """The Python files in which its probes stand."""
        return {Path(p.function.__code__.co_filename) for p in self.probes}

    def points(self, *, hidden: bool | None = None) -> float:
        """What full marks are."""
        return sum(p.points for p in self.probes if hidden is None or p.hidden == hidden)

    def with_probes(self, more: tuple[Probe, ...]) -> Lesson:
        """The same lesson with further probes, such as an instructor's private ones; all of them count as hidden."""
        ours = {p.name for p in self.probes}
        for extra in more:
            if extra.exercise not in self.exercises:
                raise AuthoringError(f"probe {extra.name!r} is for {extra.exercise!r}, "
                                     f"which lesson {self.number} lacks")
            if extra.name in ours:
                raise AuthoringError(f"lesson {self.number} already has a probe named {extra.name!r}: "
                                     "choose another name")
        adopted = tuple(replace(p, lesson=self.number, hidden=True) for p in more)
        return replace(self, probes=self.probes + adopted)


def lesson(number: str) -> Lesson:
    """The lesson with this number ("01", or its full name "01_tokenizer"); imports only that lesson's module.

    Raises UnknownLesson when the course has no such lesson, or has not written its probes yet.
    """
    asked, number = number, number.partition("_")[0].rjust(2, "0")
    if not asked or number not in LESSONS:
        raise UnknownLesson(f"no lesson {asked!r}; the course has {min(LESSONS)} to {max(LESSONS)}")
    module = f"{__package__}.{LESSONS[number]}"
    if module not in sys.modules and importlib.util.find_spec(module) is None:
        raise UnknownLesson(f"lesson {number} ({LESSONS[number]}) has no lab yet")
    importlib.import_module(module)
    return _assemble(module, number, LESSONS[number])


def load_lesson_file(file: Path, number: str, name: str) -> Lesson:
    """The exercises and probes written in one Python file outside the package (an instructor's own, or a test's)."""
    return _assemble(load_module(file, "probes"), number, name)


def load_module(file: Path, kind: str) -> str:
    """Run a Python file as a module of its own; returns the module's name. Raises AuthoringError when there is none."""
    if not file.is_file():
        raise AuthoringError(f"there is no {kind} file {file}")
    name = f"llmcourse_{kind}_{file.resolve().as_posix()}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return name


def _assemble(module: str, number: str, name: str) -> Lesson:
    found = registered_by_lesson(module)
    known = found.exercises
    for one in found.probes.values():
        if known and one.exercise not in known:
            raise AuthoringError(f"probe {one.name!r} names exercise {one.exercise!r}, which {module} does not declare")
    return Lesson(number, name, dict(known), tuple(replace(p, lesson=number) for p in found.probes.values()))
