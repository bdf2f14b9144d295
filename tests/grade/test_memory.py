"""Memory that is not private is refused or counted. Oracle: /proc, and the kernel's own answers."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llmcourse.grade import limits
from llmcourse.grade.refusals import program
from llmcourse.grade.sandbox import NAMESPACE, PROCESS, start
from tests.grade.sandboxed import ask, sandbox, tried

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="seccomp and /proc are Linux's")
known = pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no filter is known here")
BOTH = pytest.mark.parametrize("tier", [NAMESPACE, PROCESS])
MIB = 1 << 20


def called(name: str, *arguments) -> str:
    """ "done", or the system's error of a C function."""
    libc = ctypes.CDLL(None, use_errno=True)
    done = getattr(libc, name)(*arguments)
    return "done" if done >= 0 else errno.errorcode[ctypes.get_errno()]


@known
@BOTH
def test_memory_that_no_counter_shows_is_refused(folder, tier):
    def try_all():
        return [
            tried(lambda: os.memfd_create("x")),
            called("shmget", 0, MIB, 0o1600),
            called("msgget", 0, 0o1600),
            called("syscall", 425, 8, 0),
        ]

    assert ask(sandbox(folder, tier), try_all)[0] == ["PermissionError 1", "EPERM", "EPERM", "EPERM"]


@known
@BOTH
def test_mounts_and_new_namespaces_are_refused_and_ordinary_processes_are_not(folder, tier):
    new_user, child = 0x10000000, 17

    def try_all():
        clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
        pid = os.fork()
        if not pid:
            os._exit(7)
        return [
            called("unshare", new_user),
            called("syscall", clone, new_user | child, 0, 0, 0, 0),
            called("mount", b"tmpfs", b"/tmp", b"tmpfs", 0, None),
            os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]),
        ]

    assert ask(sandbox(folder, tier), try_all)[0] == ["EPERM", "EPERM", "EPERM", 7]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_no_jump_of_a_filter_leaves_it_and_it_ends_with_an_answer(machine):
    code = program(machine)
    steps = [(code[i], code[i + 2], code[i + 3]) for i in range(0, len(code), 8)]
    returns = 0x06
    assert steps[-1][0] == returns
    assert all(n + 1 + max(yes, no) < len(steps) for n, (_, yes, no) in enumerate(steps[:-1]))


def test_a_machine_without_known_numbers_has_no_filter():
    with pytest.raises(OSError, match="riscv64"):
        program("riscv64")


def shared_that_nobody_has_touched_any_more():
    """A child fills shared pages and ends: no living process's counters show them."""
    wait_for_the_count()
    piece = mmap.mmap(-1, 200 * MIB)
    if not os.fork():
        for at in range(0, len(piece), 4096):
            piece[at] = 1
        os._exit(0)
    os.wait()
    Path("filled").touch()
    time.sleep(60)
    return len(piece)


def wait_for_the_count():
    """Let the test count the memory before anything is filled."""
    Path("begins").touch()
    while not Path("go").exists():
        time.sleep(0.01)


def file_in_the_scratch_folder():
    wait_for_the_count()
    Path("big").write_bytes(bytes(40 * MIB))
    Path("filled").touch()
    time.sleep(60)


FILLS = {"shared": (shared_that_nobody_has_touched_any_more, 200 * MIB), "file": (file_in_the_scratch_folder, 40 * MIB)}


def count(folder: str, which: str) -> None:
    """Fill memory in a sandbox, and print how many bytes more are counted than before."""
    fill, least = FILLS[which]
    running = start(sandbox(Path(folder)), [], 90, fill)
    try:
        before = None  # what is there before the filling begins
        deadline = time.monotonic() + 80
        while not os.path.exists(f"/proc/{running.first}/root/tmp/filled"):
            assert time.monotonic() < deadline, "nothing was filled"
            if before is None and os.path.exists(f"/proc/{running.first}/root/tmp/begins"):
                before = running.memory()
                Path(f"/proc/{running.first}/root/tmp/go").touch()
            time.sleep(0.01)
        print(running.memory() - before)
    finally:
        running.kill()
        running.ended(wait=True)


@pytest.mark.parametrize("which", FILLS)
def test_shared_pages_and_files_in_memory_are_counted(folder, which):
    """In a process of its own, small as the fork server is: this one may hold gigabytes by now, and a sandbox is its fork."""
    code = f"from tests.grade.test_memory import count; count({str(folder)!r}, {which!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    least = FILLS[which][1]
    assert least <= int(done.stdout) < least + 100 * MIB


@BOTH
def test_when_memory_runs_out_the_worker_dies_first(folder, tier):
    running = start(sandbox(folder, tier), [], 30, lambda: time.sleep(60))
    try:
        pids = [running.first, *running.processes()]
        assert {Path(f"/proc/{pid}/oom_score_adj").read_text().strip() for pid in pids} == {"1000"}
        assert Path("/proc/self/oom_score_adj").read_text().strip() != "1000"
    finally:
        running.kill()
        running.ended(wait=True)


@pytest.mark.parametrize(
    "line, file", [("0::/a/b", "a/memory.max"), ("5:cpu,memory:/a", "memory/a/memory.limit_in_bytes")]
)
def test_the_limit_of_the_container_counts(tmp_path, line, file):
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("3221225472\n")
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "mine").write_text(line + "\n")
    assert limits._container_limits(str(tmp_path), str(tmp_path / "mine")) == [3 << 30]


def test_in_a_small_container_fewer_workers_run_at_once(monkeypatch):
    monkeypatch.setattr(limits, "memory_here", lambda: 3 << 30)
    assert limits.jobs_that_fit(8) == 1
    assert limits.limits_for(limits.jobs_that_fit(8)).memory <= (3 << 30) // 2
