"""Which machines and models the compiled step runs on, and if not, why."""

from __future__ import annotations

import importlib.util
import os
import platform

_MACHINES = {"x86_64": ("avx2", "fma", "f16c"), "amd64": ("avx2", "fma", "f16c"), "aarch64": (), "arm64": ()}


def why_no_kernels() -> str | None:
    """Why the kernels cannot run on this machine; None where they can. Imports numba only where it is installed."""
    if importlib.util.find_spec("numba") is None:
        return "numba is not installed (pip install -c constraints.txt -e '.[numba]')"
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "numba's compiler is switched off (NUMBA_DISABLE_JIT)"
    machine = platform.machine().lower()
    if machine not in _MACHINES:
        return f"there are no kernels for {platform.machine()} processors"
    import llvmlite.binding as llvm

    has = llvm.get_host_cpu_features()
    absent = [feature for feature in _MACHINES[machine] if not has.get(feature)]
    return f"the processor has no {', '.join(absent)}" if absent else None


def why_not(config) -> str | None:
    """Why the kernels cannot compute a model of this config; None where they can."""
    if config.value_dim != config.head_dim:
        return f"its values have {config.value_dim} channels a head and its keys {config.head_dim}"
    for what, size, multiple in (
        ("its width", config.width, 32), ("its feed-forward width", config.ffn_width, 32),
        ("the width of its heads together", config.n_heads * config.head_dim, 32), ("its head size", config.head_dim, 16),
    ):  # fmt: skip
        if size % multiple:
            return f"{what} is {size}, no multiple of {multiple}"
    return None
