"""Numerical stages. This is the only floor that knows about devices."""

from __future__ import annotations

from llmcourse.ops.cpu import CPU
from llmcourse.ops.fused import FUSED
from llmcourse.ops.numba.table import NUMBA, NUMBA_FAST
from llmcourse.ops.parts import STAGES, Limits, Parts, as_it_is
from llmcourse.ops.reference import REFERENCE

TABLES = {"reference": REFERENCE, "cpu": CPU, "fused": FUSED, "numba": NUMBA, "numba-fast": NUMBA_FAST}


def default_parts(device_type: str) -> Parts:
    """The fastest tested table for a device: "cpu" on the CPU, "fused" elsewhere."""
    return CPU if device_type == "cpu" else FUSED


__all__ = ["CPU", "FUSED", "NUMBA", "NUMBA_FAST", "REFERENCE", "STAGES", "TABLES", "Limits", "Parts", "as_it_is", "default_parts"]
