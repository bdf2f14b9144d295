"""What an untrusted worker may use, and the user that it becomes."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from dataclasses import dataclass

try:
    import resource  # before any worker is shut in, where it could not be found
except ImportError:
    resource = None  # Windows, where no limit is ever set

from .refusals import refuse
from .syscalls import (
    CAP_DAC_READ_SEARCH,
    PR_SET_KEEPCAPS,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    keep_capabilities,
    prctl,
)

GIBIBYTE = 1 << 30
LEAST_MEMORY = GIBIBYTE  # torch alone needs 0.8
CUDA_LIBRARIES = 16 * GIBIBYTE
_FIRST_UID, _UIDS = 61184, 4000  # no system gives these to a person or a service of its own


@dataclass(frozen=True)
class Limits:
    """Of one worker.

    memory: bytes of address space of one process, and of private memory of all of a worker's processes together.
    processes: of the worker at once, threads counted. files: open at once. file_bytes: of one file.
    """

    memory: int = 4 * GIBIBYTE
    processes: int = 64
    files: int = 256
    file_bytes: int = 64 << 20


def _mapped_by_cuda() -> int:
    """Address space, in bytes, that a PyTorch built for CUDA maps when it is imported and never fills; 0 for other builds.

    The watch on private memory, which does not count it, keeps the limit that was asked for.
    """
    torch = importlib.util.find_spec("torch")
    folder = torch.submodule_search_locations[0] if torch and torch.submodule_search_locations else ""
    return CUDA_LIBRARIES if os.path.exists(os.path.join(folder, "lib", "libtorch_cuda.so")) else 0


MAPPED_BY_CUDA = _mapped_by_cuda()  # before any worker is shut in, where torch could not be found


def limits_for(n_jobs: int) -> Limits:
    """The usual limits, less memory where n_jobs workers at once could take more than half of the machine's."""
    total = memory_here()
    return Limits(memory=max(min(Limits.memory, total // (2 * n_jobs)), LEAST_MEMORY)) if total else Limits()


def jobs_that_fit(n_jobs: int) -> int:
    """As many workers at once, at most n_jobs, as half of the memory holds."""
    return max(1, min(n_jobs, memory_here() // (2 * LEAST_MEMORY))) if memory_here() else n_jobs


def memory_here() -> int:
    """Bytes of memory of this machine, or of the container that it is; 0 where nothing tells."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
    return min([total, *_container_limits()])


def _container_limits(groups: str = "/sys/fs/cgroup", mine: str = "/proc/self/cgroup") -> list[int]:
    """Limits on memory of the control groups that this process is in, and of those around them."""
    try:
        with open(mine) as file:
            paths = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []
    found = []
    for _, kind, path in paths:
        if kind and "memory" not in kind.split(","):
            continue
        top, name = (f"{groups}/memory", "memory.limit_in_bytes") if kind else (groups, "memory.max")
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for n in range(len(parts) + 1):
            try:
                with open("/".join([top, *parts[:n], name])) as file:
                    found.append(int(file.read()))
            except (OSError, ValueError):
                continue  # a group without this file, or without a limit ("max")
    return found


def worker_uid(slot: int) -> int:
    """The user that the worker of this slot becomes when the grader runs as root, otherwise the present one.

    Each slot has its own, so that one worker's processes count neither against another's nor can reach them.
    """
    if not hasattr(os, "geteuid"):
        return 0  # Windows, where nobody becomes another user
    if os.geteuid():
        return os.geteuid()
    return _FIRST_UID + (os.getpid() * 16 + slot) % _UIDS


def set_limits(limits: Limits, cpu_seconds: float, uid: int) -> None:
    """Limit this process and its children for good (POSIX). Call it before `become`."""
    wanted = {
        "RLIMIT_AS": limits.memory + MAPPED_BY_CUDA,
        "RLIMIT_CPU": int(cpu_seconds) + 1,
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.files,
    }
    if sys.platform.startswith("linux"):
        n_mine = 0 if os.geteuid() == 0 else _processes_of(uid)
        wanted["RLIMIT_NPROC"] = limits.processes + n_mine
    for name, value in wanted.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(kind, (value, value))
        except (ValueError, OSError):
            if sys.platform.startswith("linux"):  # macOS refuses some of them
                raise


def become(uid: int, *, reads_all: bool = False) -> None:
    """Turn this process into an unprivileged user's who can gain nothing back (Linux).

    reads_all: stay able to read every file; for a machine where only root can read the Python installation.
    """
    if os.geteuid() == 0:
        prctl(PR_SET_KEEPCAPS, int(reads_all))
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    keep_capabilities(*([CAP_DAC_READ_SEARCH] if reads_all else []))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        refuse()
    except OSError:
        return  # `isolation` has found out before, and the reports say so


def _processes_of(uid: int) -> int:
    """Threads that this user already has: they count too, where the limit is the user's and not the namespace's."""
    n_threads = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                n_threads += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue  # it ended while we looked
    return n_threads


def die_first() -> None:
    """When memory runs out, the kernel takes this process and its children before any other."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        return  # no /proc on this machine; the limits hold without it
