"""The probes that grade the labs: one module a lesson, and the small framework that they are written with.

    lesson("01")          the Lesson with its exercises and probes, imported on first use
    probe, exercise       what a lesson's module is written with (docs/authoring.md)
    raises                `raises(ValueError, f, x)` is what f(x) raises, judged with the result
    wrong, edited         what authoring/NN_name/wrong.py is written with

A probe runs in two halves that may live in two processes: `run.run_probe` executes it and returns plain JSON, and
`run.judge` compares that JSON with the reference's. Nothing in here imports torch by itself.
"""

from __future__ import annotations

from .catalog import LESSONS, Lesson, lesson, load_lesson_file
from .probe import Answer, Exercise, NotWritten, Probe, exercise, probe, raises
from .wrong import Wrong, edited, load_wrong, wrong

__all__ = ["LESSONS", "Answer", "Exercise", "Lesson", "NotWritten", "Probe", "Wrong", "edited", "exercise", "lesson",
           "load_lesson_file", "load_wrong", "probe", "raises", "wrong"]
