"""What a process that is shut in may do and is. Oracle: the descriptions in grade/sandbox.py and grade/limits.py."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from llmcourse.grade.limits import MAPPED_BY_CUDA, become
from llmcourse.grade.filesystem import VisibleFiles
from llmcourse.grade.sandbox import NAMESPACE, PROCESS, Sandbox, start
from llmcourse.grade.processes import children
from llmcourse.grade.syscalls import PR_SET_DUMPABLE, prctl
from tests.grade.sandboxed import LIMITS, SYSTEM, ask, sandbox, tried

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="namespaces are Linux's")
NOBODY = 61999


def test_no_other_process_and_no_network_can_be_seen(folder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found, _ = ask(
            sandbox(folder),
            lambda: [
                sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
                tried(lambda: socket.socket().connect(("127.0.0.1", port))),
            ],
        )
    assert found[0] in ([], [1, 2]) and found[1] != "done"


@pytest.mark.parametrize("tier", [NAMESPACE, PROCESS])
def test_the_worker_is_an_unprivileged_user_for_good(folder, tier):
    def look():
        status = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
        return [status["CapEff"], status["CapPrm"], status["NoNewPrivs"], os.getuid() == 0, tried(lambda: os.setuid(0))]

    found, _ = ask(sandbox(folder, tier), look)
    assert found == ["0" * 16, "0" * 16, "1", False, "PermissionError 1"]


@pytest.mark.parametrize("tier", [NAMESPACE, PROCESS])
def test_open_files_of_the_grader_are_closed(folder, tier):
    with open(folder / "secret", "w+") as secret:
        os.set_inheritable(secret.fileno(), True)
        number = secret.fileno()
        found, _ = ask(sandbox(folder, tier), lambda: [tried(lambda: os.read(number, 1)), os.read(0, 1).decode()])
    assert found == ["OSError 9", ""]


@pytest.mark.parametrize("tier", [NAMESPACE, PROCESS])
@pytest.mark.parametrize(
    "action, how",
    [
        (lambda: os._exit(3), "exit status 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "signal 9"),
        (lambda: os.abort(), "signal 6"),
    ],
)
def test_how_it_ended_is_told(folder, tier, action, how):
    assert ask(sandbox(folder, tier), action) == (None, how)


@pytest.mark.parametrize("tier", [NAMESPACE, PROCESS])
def test_a_daemon_is_gone_when_the_worker_has_ended(folder, tier):
    if tier == PROCESS and os.geteuid():
        pytest.skip("without root only what becomes the server's own child is found")

    def leave_daemon():
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            time.sleep(60)
            os._exit(0)
        return "left"

    place = sandbox(folder, tier)
    assert ask(place, leave_daemon)[0] == "left"
    assert [
        p for p in Path("/proc").glob("[0-9]*") if p.exists() and p.stat().st_uid == place.uid != os.geteuid()
    ] == []


@pytest.mark.parametrize("tier", [NAMESPACE, PROCESS])
def test_a_few_processes_are_allowed_and_no_more(folder, tier):
    if tier == PROCESS and os.geteuid():
        pytest.skip("the limit counts all processes of this user, the tests' own among them")

    def fork_many():
        for number in range(100):
            try:
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
            except BlockingIOError:
                return number
        return 100

    assert 8 <= ask(sandbox(folder, tier), fork_many)[0] <= 16


def test_memory_beyond_the_limit_is_refused(folder):
    assert ask(sandbox(folder), lambda: tried_memory((2 << 30) + MAPPED_BY_CUDA))[0] == "MemoryError"


def tried_memory(n: int) -> str:
    try:
        bytearray(n)
    except MemoryError:
        return "MemoryError"
    return "done"


def test_killing_the_worker_kills_all_that_it_started(folder):
    place = sandbox(folder)
    running = start(place, [], 30, lambda: [os.fork(), os.fork(), time.sleep(60)])
    time.sleep(0.2)
    running.kill()
    assert running.ended(wait=True) == "signal 9" and children(os.getpid()) == []


@pytest.mark.skipif(
    os.geteuid() != 0, reason="root is what can become another user here; without root every test is this one"
)
def test_a_user_without_privileges_can_shut_in_too(folder):
    os.chmod(folder, 0o777)
    answer, results = os.pipe()
    place = VisibleFiles(str(folder), SYSTEM)

    def as_nobody():
        inner = Sandbox(NAMESPACE, LIMITS, NOBODY, place)
        return ask(
            inner,
            lambda: [
                os.getuid(),
                sorted(os.listdir("/")),
                len(os.listdir("/proc")) > 0,
                tried(lambda: open("/usr/x", "w")),
            ],
        )[0]

    pid = os.fork()
    if not pid:
        try:
            become(NOBODY)
            prctl(PR_SET_DUMPABLE, 1)  # as in a process that this user started
            said = as_nobody()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(results, json.dumps(said).encode())
        os._exit(0)
    os.close(results)
    os.waitpid(pid, 0)
    with os.fdopen(answer) as pipe:
        said = json.loads(pipe.read())
    if isinstance(said, str):
        pytest.skip(f"this machine lets only root make namespaces: {said}")
    assert said[0] == NOBODY and "usr" in said[1] and "home" not in said[1] and said[3] != "done"
