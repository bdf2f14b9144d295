"""Which processes a worker has made, and how much memory they fill, as /proc tells it (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterable

_SHARED = ("/dev/zero", "/memfd:", "/SYSV")  # how a map names memory without a file that processes share


def memory_of(pids: Iterable[int]) -> int:
    """Bytes of these processes' private memory, and of each piece of memory that they share, counted once.

    Of a shared piece the whole size counts: its pages stay when the process that filled them has ended, and then no
    process's counters show them.
    """
    pages, shared = 0, {}
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm") as file:
                _, resident, in_files = file.read().split()[:3]
            pages += int(resident) - int(in_files)
            shared.update(_shared_pieces(pid))
        except OSError:
            continue  # it ended while we looked
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(shared.values())


def _shared_pieces(pid: int) -> dict[tuple, int]:
    """Size of each piece of shared memory that a process has mapped, by what tells pieces apart."""
    found: dict[tuple, int] = {}
    with open(f"/proc/{pid}/maps") as file:
        for line in file:
            fields = line.split(None, 5)
            if fields[1][3] == "s" and len(fields) > 5 and fields[5].startswith(_SHARED):
                start, end = (int(one, 16) for one in fields[0].split("-"))
                piece = tuple(fields[3:5])
                found[piece] = found.get(piece, 0) + end - start
    return found


def descendants(pids: Iterable[int]) -> list[int]:
    """These processes, their children, and so on."""
    found, todo = [], list(pids)
    while todo:
        found.append(todo.pop())
        todo += children(found[-1])
    return found


def children(pid: int) -> list[int]:
    """The children of a process's threads; empty where the kernel does not tell, or the process is gone."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += [int(one) for one in file.read().split()]
    except OSError:
        return found
    return found
