"""Numerical stages. This is the only floor that knows about devices."""

from __future__ import annotations

from llmcourse.ops.cpu import CPU
from llmcourse.ops.parts import STAGES, Limits, Parts, as_it_is
from llmcourse.ops.reference import REFERENCE

TABLES = {"reference": REFERENCE, "cpu": CPU}


def default_parts(device_type: str) -> Parts:
    """The fastest tested table for a device: "cpu" on the CPU, "reference" elsewhere."""
    return CPU if device_type == "cpu" else REFERENCE


__all__ = ["CPU", "REFERENCE", "STAGES", "TABLES", "Limits", "Parts", "as_it_is", "default_parts"]
