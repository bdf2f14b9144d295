"""Caches by name: what may stand behind `--cache` and in `Engine(cache=…)`."""

from __future__ import annotations

import re

FORMS = "contiguous, none, paged, paged:512 (blocks), int8, int4, int4:token/32, int4:channel/32, window:1024, window:1024+4 (any numbers; int8:… too)"

_QUANTIZED = {"int8": dict(bits=8, keys="token", group=64), "int4": dict(bits=4, keys="channel", group=32)}


def parse_spec(spec: str) -> tuple[str, dict]:
    """The kind of cache ("contiguous", "none", "paged", "quantized" or "window") and its settings.

    "paged:512" has a pool of 512 blocks that can be given out, "paged" one of a default size.     "int8" is int8:token/64, "int4" is int4:channel/32; "window:1024+4" has a window of 1,024 tokens and 4 sinks.
    Raises ValueError naming the spec and the forms that are known.
    """
    if spec in ("contiguous", "none"):
        return spec, {}
    pool = re.fullmatch(r"paged(?::([1-9]\d*))?", spec)
    if pool:
        return "paged", {} if pool[1] is None else dict(n_blocks=int(pool[1]) + 1)
    if spec in _QUANTIZED:
        return "quantized", dict(_QUANTIZED[spec])
    scheme = re.fullmatch(r"int([48]):(token|channel)/([1-9]\d*)", spec)
    if scheme:
        bits, keys, group = scheme.groups()
        return "quantized", dict(bits=int(bits), keys=keys, group=int(group))
    window = re.fullmatch(r"window:([1-9]\d*)(?:\+(\d+))?", spec)
    if window:
        return "window", dict(window=int(window[1]), n_sink=int(window[2] or 0))
    raise ValueError(f"{spec!r} is no cache; the forms are {FORMS}")
