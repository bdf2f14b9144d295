"""The namespace tier's file system: a new root that holds what a submission needs, read-only, and nothing else."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .syscalls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    NEWIPC,
    NEWNET,
    NEWNS,
    NEWPID,
    NEWUSER,
    NEWUTS,
    bind_read_only,
    mount,
    pivot_root,
    unmount,
    unshare,
)

SCRATCH = "/tmp"
SCRATCH_BYTES = 64 << 20
_DEVICES = ("null", "zero", "full", "random", "urandom")
_READ_ONLY = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV
_REFUSAL = "raise ModuleNotFoundError(__name__ + ' is hidden while a lab is graded', name=__name__)\n"


@dataclass(frozen=True)
class VisibleFiles:
    """What a worker sees of the file system, at the same absolute paths as outside.

    root: an empty folder of the parent's, on which the new root is mounted (in the worker's namespace only).
    shown: files and folders that are there, read-only; hidden: what is covered of them.
    """

    root: str
    shown: tuple[str, ...]
    hidden: tuple[str, ...] = ()


def leave_namespaces() -> None:
    """Unshare mounts, processes (for the next child), network, host name and IPC; without root also the user ids.

    Raises OSError where the machine does not allow it.
    """
    flags = NEWNS | NEWPID | NEWNET | NEWUTS | NEWIPC
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        unshare(flags)
        return
    unshare(flags | NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def enter(visible: VisibleFiles, uid: int) -> None:
    """Build the new root and move into it; called by the first process of a new PID namespace. Raises OSError.

    uid: of the worker that will live there.
    """
    mount("", "/", flags=MS_REC | MS_PRIVATE)
    mount("tmpfs", visible.root, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=2k,mode=755")
    _furnish(visible.root, uid)
    for path in visible.shown:
        _show(visible.root, path)
    for path in visible.hidden:
        _hide(visible.root, path)
    os.chdir(visible.root)
    pivot_root(".", ".")  # the old root now lies over the new one, at the same place
    unmount(".")
    os.chdir("/")
    mount("", "/", flags=_READ_ONLY)
    os.chdir(SCRATCH)


def scratch_used(pid: int) -> int:
    """Bytes in the scratch folder that this process sees: they are memory, too."""
    try:
        found = os.statvfs(f"/proc/{pid}/root{SCRATCH}")
    except OSError:
        return 0  # it has ended, or this user may not look
    return min((found.f_blocks - found.f_bfree) * found.f_frsize, SCRATCH_BYTES)


def _furnish(root: str, uid: int) -> None:
    """/proc of the new PID namespace, a few devices, and one writable folder of limited size."""
    for name in ("proc", "dev", "etc", SCRATCH[1:]):
        os.mkdir(f"{root}/{name}")
    try:
        mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except PermissionError:
        pass  # inside some containers no new /proc may be mounted: then the worker has none, which is safe
    for name in _DEVICES:
        _write(f"{root}/dev/{name}", "")
        mount(f"/dev/{name}", f"{root}/dev/{name}", flags=MS_BIND)
    os.symlink(SCRATCH, f"{root}/dev/shm")
    _write(f"{root}/etc/passwd", f"student:x:{uid}:{uid}::{SCRATCH}:/bin/sh\n")
    _write(f"{root}/etc/hidden.py", _REFUSAL)
    _write(f"{root}/etc/hidden", "")
    mount("tmpfs", root + SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV, f"size={SCRATCH_BYTES},nr_inodes=4k,mode=1777")


def _show(root: str, path: str) -> None:
    """The file, folder or link at the same place under the new root."""
    target = root + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        _write(target, "")
    bind_read_only(path, target)


def _hide(root: str, path: str) -> None:
    """Cover a folder or a file that is shown; a Python module is covered by one that refuses to be imported."""
    target = root + path
    if not os.path.exists(target):
        return
    if not os.path.isdir(target):
        bind_read_only(f"{root}/etc/hidden.py" if path.endswith(".py") else f"{root}/etc/hidden", target)
        return
    is_package = os.path.exists(f"{target}/__init__.py")
    mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, "size=16k,nr_inodes=8,mode=755")
    if is_package:
        _write(f"{target}/__init__.py", _REFUSAL)
    mount("", target, flags=_READ_ONLY)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
