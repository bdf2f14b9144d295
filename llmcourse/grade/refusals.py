"""What a worker's kernel refuses it (Linux, seccomp): memory that no counter shows, mounts, namespaces and other processes.

A filter is a small program that the kernel runs before each system call of this process and its children, for good.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from .syscalls import NEWCGROUP, NEWIPC, NEWNET, NEWNS, NEWPID, NEWUSER, NEWUTS, set_filter

_EVERYWHERE = {  # newer system calls have one number on every architecture
    "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442, "memfd_secret": 447,
}  # fmt: skip
_NUMBERS = {
    "x86_64": (0xC000003E, {
        "memfd_create": 319, "shmget": 29, "msgget": 68, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
        "unshare": 272, "setns": 308, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "add_key": 248,
        "request_key": 249, "keyctl": 250, "userfaultfd": 323, "bpf": 321, "perf_event_open": 298, "clone": 56,
    }),
    "aarch64": (0xC00000B7, {
        "memfd_create": 279, "shmget": 194, "msgget": 186, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51,
        "unshare": 97, "setns": 268, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "add_key": 217,
        "request_key": 218, "keyctl": 219, "userfaultfd": 282, "bpf": 280, "perf_event_open": 241, "clone": 220,
    }),
}  # fmt: skip
_CLONE3 = 435
_X32 = 0x40000000  # the first number of x86's second set of system calls
_NEW_NAMESPACES = NEWNS | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET | NEWCGROUP
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16  # in the kernel's struct seccomp_data


def refuse() -> None:
    """Install the filter; needs no_new_privs. Raises OSError where this machine has none, or is of another kind."""
    instructions = program(os.uname().machine)
    set_filter(ctypes.create_string_buffer(instructions, len(instructions)), len(instructions) // 8)


def program(machine: str) -> bytes:
    """The filter, 8 bytes an instruction. Raises OSError for a machine whose numbers we do not know."""
    if machine not in _NUMBERS:
        raise OSError(errno.ENOSYS, f"no filter is known for {machine}")
    architecture, numbers = _NUMBERS[machine]
    clone, refused = numbers["clone"], sorted({*numbers.values(), *_EVERYWHERE.values()} - {numbers["clone"]})
    body = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_JUMP_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL)]
    body += [(_LOAD, 0, 0, _NUMBER_AT)]
    body += [(_JUMP_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    # the C library falls back to clone, whose flags a filter can read
    body += [(_JUMP_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    for number in refused:
        body += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    body += [(_JUMP_EQUAL, 0, 3, clone), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT), (_JUMP_SET, 0, 1, _NEW_NAMESPACES)]
    body += [(_RETURN, 0, 0, _ERROR | errno.EPERM), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *one) for one in body)
