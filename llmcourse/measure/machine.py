"""This machine's ceilings, measured: bytes per second from memory, floating point operations per second; and its facts.

Every function imports torch when it is called, so that facts can be told where torch is missing.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from llmcourse.errors import DeviceUnavailable
from llmcourse.measure.clock import times

if TYPE_CHECKING:
    import torch

_MIN_BUFFER, _MAX_BUFFER = 256 << 20, 1 << 30  # bytes
_CACHE_MULTIPLE = 8  # a buffer this much larger than the last-level cache is read from memory
_USUAL_CACHE = 64 << 20  # bytes, where the operating system does not tell
_PASSES = 9
_SMALLEST, _LARGEST = 256, 8192  # rows of the square matrices
_LONG_ENOUGH_S = 0.008  # a product that takes this long hides the cost of starting it
_BUDGET_S = 0.5


def memory_bandwidth(device: str | torch.device = "cpu") -> float:
    """Bytes per second at which `device` reads its memory: the ceiling of decode.

    Method: the sum of a float32 buffer at least eight times as large as the last-level cache (256 MB to 1 GB), with
    torch's own threads; the fastest of nine passes after a warm-up: what another program takes away is not the machine's
    ceiling. Takes up to a second.
    Raises DeviceUnavailable when torch has no such device, or it has no room for the buffer.
    """
    import torch

    n_bytes = min(_MAX_BUFFER, max(_MIN_BUFFER, _CACHE_MULTIPLE * _last_level_cache()))
    buffer = _allocate(lambda: torch.ones(n_bytes // 4, dtype=torch.float32, device=device), device, n_bytes)
    return n_bytes / min(times(buffer.sum, buffer.device, _PASSES))


def peak_flops(dtype: str | torch.dtype = "float32", device: str | torch.device = "cpu") -> float:
    """Floating point operations per second of `device` in matrix products of `dtype`: the ceiling of prefill.

    Method: a square product of n rows is 2n³ operations; n is doubled from 256 until the fastest of three takes 8 ms;
    then passes for half a second, of which the fastest counts, as above. Float32 on CUDA follows torch's own setting for
    TF32 (off unless somebody turned it on).
    Raises DeviceUnavailable when the device or its products of that dtype do not exist.
    """
    import torch

    number = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    n = _SMALLEST
    while True:
        make = partial(torch.randn, n, n, device=device)  # not ones: a card computes simple numbers at higher clocks
        a, b = (_allocate(make, device, n * n * 4).to(number) for _ in range(2))
        try:
            one = min(times(lambda: torch.mm(a, b), a.device, 3))
        except (RuntimeError, NotImplementedError) as error:
            raise DeviceUnavailable(f"no matrix products of {dtype} on {device}: {error}") from error
        if one >= _LONG_ENOUGH_S or n >= _LARGEST:
            break
        n *= 2
    passes = min(50, max(3, int(_BUDGET_S / one)))
    return 2 * n**3 / min(one, *times(lambda: torch.mm(a, b), a.device, passes))


def native_bfloat16(device: str | torch.device = "cpu") -> bool | None:
    """Whether `device` has instructions for bfloat16 products (without them they work, slowly). None: cannot tell."""
    import torch

    kind = torch.device(device).type
    if kind == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if kind != "cpu":
        return None
    if sys.platform == "darwin":
        return _sysctl("hw.optional.arm.FEAT_BF16") == "1"
    cpuinfo = _cpuinfo()
    if not cpuinfo:
        return None
    flags = set((cpuinfo.get("flags") or cpuinfo.get("Features") or "").split())
    return bool(flags & {"avx512_bf16", "amx_bf16", "bf16"})


def machine_facts() -> dict:
    """What the numbers of a benchmark depend on.

    Keys: cpu (name), cores (that this process may use), ram_bytes (None where unknown), os, python, torch (None where
    it is missing), threads (of torch), devices (a list of device, name, memory_bytes: the accelerators).
    """
    facts = {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "ram_bytes": _ram_bytes(),
        "os": platform.platform(),
        "python": platform.python_version(),
        "torch": None,
        "threads": None,
        "devices": [],
    }
    try:
        import torch
    except ImportError:
        return facts
    facts.update(torch=torch.__version__, threads=torch.get_num_threads())
    for i in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(i)
        facts["devices"].append({"device": f"cuda:{i}", "name": card.name, "memory_bytes": card.total_memory})
    if torch.backends.mps.is_available():
        facts["devices"].append({"device": "mps", "name": facts["cpu"], "memory_bytes": facts["ram_bytes"]})
    return facts


def _allocate(make: Callable[[], torch.Tensor], device: str | torch.device, n_bytes: int) -> torch.Tensor:
    try:
        return make()
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts; a full device is a RuntimeError
        reason = str(error).splitlines()[0]
        raise DeviceUnavailable(f"cannot measure {device} with a buffer of {n_bytes:,} bytes: {reason}") from error


def _last_level_cache() -> int:
    """Bytes of the CPU's last-level cache."""
    for name in ("SC_LEVEL4_CACHE_SIZE", "SC_LEVEL3_CACHE_SIZE"):
        if name in getattr(os, "sysconf_names", {}) and os.sysconf(name) > 0:
            return os.sysconf(name)
    return _USUAL_CACHE


def _cpuinfo() -> dict[str, str]:
    """The first processor of /proc/cpuinfo, or {} where the operating system has no such file."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}


def _cpu_name() -> str:
    name = _sysctl("machdep.cpu.brand_string") if sys.platform == "darwin" else _cpuinfo().get("model name")
    return name or platform.processor() or platform.machine()


def _ram_bytes() -> int | None:
    if sys.platform == "darwin":
        size = _sysctl("hw.memsize")
        return int(size) if size else None
    if sys.platform == "win32":
        return _windows_ram_bytes()
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _windows_ram_bytes() -> int:
    """Physical memory through GlobalMemoryStatusEx (its structure's ullTotalPhys)."""
    import ctypes

    class MemoryStatus(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_ulong), ("load", ctypes.c_ulong), ("total", ctypes.c_ulonglong),
            *((name, ctypes.c_ulonglong) for name in ("free", "page_total", "page_free", "virtual", "virtual_free", "x")),
        ]  # fmt: skip

    status = MemoryStatus()
    status.length = ctypes.sizeof(status)
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return status.total


def _sysctl(name: str) -> str | None:
    """A value of macOS's sysctl, or None where there is no such name."""
    asked = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else None
