"""The Linux system calls of the sandbox that Python 3.10 does not offer, through ctypes; each raises OSError."""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache

NEWCGROUP = 0x2000000
NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 8, 36, 38
CAP_DAC_READ_SEARCH = 2
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_CAPABILITY_VERSION_3 = 0x20080522

_SYS_MOUNT_SETATTR = 442  # the same on every architecture
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4


class _CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapData(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


class _FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def unshare(flags: int) -> None:
    """Leave namespaces; for NEWPID, the next child is the first process of the new one."""
    _check(_libc().unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2)."""
    arguments = [os.fsencode(text) if text else None for text in (source, target, kind)]
    _check(_libc().mount(*arguments, ctypes.c_ulong(flags), os.fsencode(data) if data else None), f"mount {target}")


def unmount(target: str) -> None:
    """Detach what is mounted at target, now for new opens and later for good."""
    _check(_libc().umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root of this mount namespace and put the previous root at `old`."""
    _check(_libc().pivot_root(os.fsencode(new), os.fsencode(old)), "pivot_root")


def bind_read_only(source: str, target: str) -> None:
    """Show `source`, with all that is mounted in it, at `target` too: read-only, without devices or set-uid files."""
    mount(source, target, flags=MS_BIND | MS_REC)
    wanted = _MountAttr(_ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, 0, 0, 0)
    done = _libc().syscall(
        _SYS_MOUNT_SETATTR,
        _AT_FDCWD,
        os.fsencode(target),
        _AT_RECURSIVE,
        ctypes.byref(wanted),
        ctypes.c_size_t(ctypes.sizeof(wanted)),
    )
    if done:  # before Linux 5.12: the top one only, keeping the flags that it has
        kept = os.statvfs(target).f_flag & (MS_NOEXEC | 1024 | 2048)
        mount("", target, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | kept)


def prctl(option: int, value: int) -> None:
    """prctl(2) with one argument."""
    zero = ctypes.c_ulong(0)
    _check(_libc().prctl(option, ctypes.c_ulong(value), zero, zero, zero), "prctl")


def set_filter(instructions: ctypes.Array, n: int) -> None:
    """prctl(PR_SET_SECCOMP) with a filter of n instructions."""
    whole = _FilterProgram(n, ctypes.cast(instructions, ctypes.c_void_p))
    zero, filtering = ctypes.c_ulong(0), ctypes.c_ulong(_SECCOMP_MODE_FILTER)
    _check(_libc().prctl(_PR_SET_SECCOMP, filtering, ctypes.byref(whole), zero, zero), "seccomp")


def keep_capabilities(*numbers: int) -> None:
    """Give up every capability of this process but these (numbers below 32)."""
    kept = sum(1 << number for number in numbers)
    header, data = _CapHeader(_CAPABILITY_VERSION_3, 0), (_CapData * 2)(_CapData(kept, kept, 0), _CapData(0, 0, 0))
    _check(_libc().capset(ctypes.byref(header), data), "capset")


@lru_cache(maxsize=None)
def _libc():
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
