"""The tables that bring a compiled step: "numba" and "numba-fast". numba itself is imported when a step is made.

Which mode is the default was measured (docs/kernels.md): "fine" is a few percent slower in decode and stays fifty times closer
to float32, so that greedy text is nearly always the same.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import cache, partial

import torch

from llmcourse.cache.pool import PoolCache
from llmcourse.ops.cpu import CPU
from llmcourse.ops.numba.fits import why_no_kernels, why_not
from llmcourse.ops.numba.sampling import sample

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_MOST_BYTES = 2 << 30  # of a pool, and no more than a quarter of the machine's memory


def prepare(model, cache, limits, mode: str):
    """The compiled step on this model and pool, or None where it cannot be: then the stages of the table "cpu" compute."""
    from llmcourse.ops.numba.prepared import CompiledStep
    from llmcourse.ops.numba.weights import from_model, stack

    weights = getattr(model, "packed_weights", None)
    if weights is None:
        weights, _ = stack(model.config, from_model(model.weights))
    return CompiledStep(model.config, weights, cache, mode, torch.get_num_threads(), limits.max_context)


def make_cache(spec: str, config, dtype, device) -> PoolCache | None:
    """A pool for the compiled step; None, with one line that says why, where the step cannot run: it then gets no pool and is
    not asked for."""
    reason = why_no_kernels() or why_not(config)
    if torch.device(device).type != "cpu":
        reason = f"the model is on {device}, and the kernels compute on the CPU"
    elif dtype not in _FLOATS:
        reason = f"the kernels know no {dtype}"
    elif spec != "contiguous":
        reason = f"the kernels know no cache {spec!r}"
    if reason:
        say_once(f"{config.name} goes stage by stage, by the table cpu: {reason}")
        return None
    return pool_for(config, torch.float32, spec)


def pool_for(config, dtype: torch.dtype, spec: str) -> PoolCache:
    """A pool as large as this machine's memory suggests, and large enough for one whole context. Memory is taken as it fills."""
    per_token = PoolCache(config, dtype, n_tokens=0).bytes_for(1)
    n_tokens = max(config.context, min(_MOST_BYTES, _ram() // 4) // per_token)
    made = PoolCache(config, dtype, n_tokens=n_tokens)
    made.spec = spec
    return made


@cache
def say_once(line: str) -> None:
    """Tell the user something, once in a process."""
    print(f"llmcourse: {line}", file=sys.stderr, flush=True)


def _ram() -> int:
    """Bytes of memory; where the system does not tell, what any machine has."""
    names = getattr(os, "sysconf_names", {})
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if "SC_PHYS_PAGES" in names else 4 << 30


NUMBA = replace(
    CPU, prepare=partial(prepare, mode="fine"), takes=frozenset({"pool"}), make_cache=make_cache, sample=sample, name="numba"
)
NUMBA_FAST = replace(NUMBA, prepare=partial(prepare, mode="fast"), name="numba-fast")
