"""Encoded tensors and arrays, read back as numpy by the judge: their bytes are data, never an object's own methods."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass

from .probe import Tolerance

_SIZES = {"bool": 1, "uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
          "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16}


@dataclass(frozen=True)
class Array:
    """Values (a numpy array [*shape]; bfloat16 widened to float32), their dtype's name, and "tensor" or "array"."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    values: object

    def shown(self, index: tuple[int, ...]) -> str:
        """One value as text, floats with seven digits."""
        value = self.values[index].item()
        return f"{value:.7g}" if isinstance(value, float) else str(value)


def read_array(encoded: list) -> Array:
    """The array behind ["tensor" | "array", dtype, shape, base64]; raises ValueError where that is malformed."""
    import numpy as np

    kind, dtype, shape, text = encoded
    if dtype not in _SIZES or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"cannot read a {kind} of {dtype} with shape {shape}")
    raw = base64.b64decode(text, validate=True)
    if len(raw) != math.prod(shape) * _SIZES[dtype]:
        raise ValueError(f"{len(raw)} bytes are not a {kind} of {dtype} with shape {shape}")
    if dtype == "bfloat16":
        values = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        values = np.frombuffer(raw, np.dtype(dtype).newbyteorder("<"))
    return Array(kind, dtype, tuple(shape), values.reshape(shape))


def first_difference(got: Array, want: Array, tolerance: Tolerance) -> tuple[int, ...] | None:
    """Index of the first value outside the tolerance, None if there is none; NaN equals NaN, infinities must match."""
    import numpy as np

    if want.dtype.startswith(("float", "bfloat", "complex")):
        same = np.isclose(got.values, want.values, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=True)
    else:
        same = got.values == want.values
    if np.all(same):
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmin(same)), got.shape)) if got.shape else ()
