"""What a process that is shut in can see and do. Oracle: the lists in grade/sandbox.py and grade/limits.py."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

import pytest

from llmcourse.grade.limits import Limits, become, worker_uid
from llmcourse.grade.sandbox import View
from llmcourse.grade.shelter import NAMESPACE, PROCESS, Shelter, children, start
from llmcourse.grade.syscalls import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, prctl

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="namespaces are Linux's")
SYSTEM = tuple(path for path in ("/usr", "/bin", "/lib", "/lib64") if os.path.exists(path))
NOBODY = 61999


@pytest.fixture
def folder(namespaces):
    """A folder that any user can reach; orphans become this process's children, as they become the fork server's."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)
    prctl(PR_SET_CHILD_SUBREAPER, 0)


def shelter(folder: Path, tier: str = NAMESPACE, uid: int | None = None, **view) -> Shelter:
    uid = worker_uid(99) if uid is None else uid
    (folder / "root").mkdir(exist_ok=True)
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    os.chown(scratch, uid, -1)
    limits = Limits(memory=1 << 30, processes=16)
    if tier == PROCESS:
        return Shelter(tier, limits, uid, scratch=str(scratch))
    return Shelter(tier, limits, uid, View(str(folder / "root"), view.get("shown", SYSTEM), view.get("hidden", ())))


def ask(place: Shelter, question) -> tuple[object, str]:
    """What question() returns inside, through JSON, and how the process ended."""
    answer, results = os.pipe()

    def work():
        os.write(results, json.dumps(question()).encode())

    running = start(place, [results], 30, work)
    os.close(results)
    assert not running.error, running.error
    ended = running.ended(wait=True)
    with os.fdopen(answer, "rb") as pipe:
        said = pipe.read()
    return json.loads(said) if said else None, ended


def tried(action) -> str:
    try:
        action()
    except OSError as error:
        return type(error).__name__ + f" {error.errno}"
    return "done"


def test_nothing_is_there_but_what_is_shown(folder):
    (folder / "seen").mkdir()
    (folder / "seen" / "file").write_text("x")
    (folder / "unseen").write_text("x")
    place = shelter(folder, shown=(*SYSTEM, str(folder / "seen")))
    found, _ = ask(place, lambda: [sorted(os.listdir(folder)), os.listdir(folder / "seen"), os.path.exists("/home"), os.path.exists("/root")])
    assert found == [["seen"], ["file"], False, False]


def test_what_is_hidden_in_what_is_shown_is_covered(folder):
    (folder / "package").mkdir()
    for name in ("__init__.py", "secret.py", "data.txt"):
        (folder / "package" / name).write_text("the secret")
    (folder / "package" / "inner").mkdir()
    (folder / "package" / "inner" / "more.txt").write_text("the secret")
    hidden = [str(folder / "package" / name) for name in ("secret.py", "data.txt", "inner", "absent")]
    place = shelter(folder, shown=(*SYSTEM, str(folder / "package")), hidden=tuple(hidden))

    def look():
        return [(folder / "package" / name).read_text() for name in ("__init__.py", "secret.py", "data.txt")] + os.listdir(hidden[2])

    (first, second, third), _ = ask(place, look)
    assert (first, third) == ("the secret", "") and "hidden" in second


def test_only_the_scratch_folder_can_be_written(folder):
    (folder / "seen").mkdir(mode=0o777)
    os.chmod(folder / "seen", 0o777)
    place = shelter(folder, shown=(*SYSTEM, str(folder / "seen")))
    found, _ = ask(place, lambda: [tried(lambda: open(f"{where}/x", "w").write("x")) for where in (folder / "seen", "/", "/usr", "/etc", "/dev", "/tmp", ".")])
    assert found[-2:] == ["done", "done"] and not set(found[:-2]) & {"done"}
    assert os.listdir(folder / "seen") == []


def test_the_scratch_folder_is_new_each_time_and_of_limited_size(folder):
    place = shelter(folder)

    def fill():
        for number in range(1000):
            with open(f"/tmp/{number}", "wb") as file:
                file.write(bytes(1 << 20))

    assert ask(place, lambda: [os.listdir("/tmp"), tried(fill)])[0] == [[], "OSError 28"]
    assert ask(place, lambda: os.listdir("/tmp"))[0] == []


def test_no_other_process_and_no_network_can_be_seen(folder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found, _ = ask(shelter(folder), lambda: [
            sorted(int(name) for name in os.listdir("/proc") if name.isdigit()), tried(lambda: socket.socket().connect(("127.0.0.1", port)))])
    assert found[0] in ([], [1, 2]) and found[1] != "done"


@pytest.mark.parametrize("tier", [NAMESPACE, PROCESS])
def test_the_worker_is_an_unprivileged_user_for_good(folder, tier):
    def look():
        status = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
        return [status["CapEff"], status["CapPrm"], status["NoNewPrivs"], os.getuid() == 0, tried(lambda: os.setuid(0))]

    found, _ = ask(shelter(folder, tier), look)
    assert found == ["0" * 16, "0" * 16, "1", False, "PermissionError 1"]


@pytest.mark.parametrize("tier", [NAMESPACE, PROCESS])
def test_open_files_of_the_grader_are_closed(folder, tier):
    with open(folder / "secret", "w+") as secret:
        os.set_inheritable(secret.fileno(), True)
        number = secret.fileno()
        found, _ = ask(shelter(folder, tier), lambda: [tried(lambda: os.read(number, 1)), os.read(0, 1).decode()])
    assert found == ["OSError 9", ""]


@pytest.mark.parametrize("tier", [NAMESPACE, PROCESS])
@pytest.mark.parametrize("action, how", [(lambda: os._exit(3), "exit status 3"), (lambda: os.kill(os.getpid(), signal.SIGKILL), "signal 9"),
                                         (lambda: os.abort(), "signal 6")])
def test_how_it_ended_is_told(folder, tier, action, how):
    assert ask(shelter(folder, tier), action) == (None, how)


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

    place = shelter(folder, tier)
    assert ask(place, leave_daemon)[0] == "left"
    assert [p for p in Path("/proc").glob("[0-9]*") if p.exists() and p.stat().st_uid == place.uid != os.geteuid()] == []


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

    assert 8 <= ask(shelter(folder, tier), fork_many)[0] <= 16


def test_memory_beyond_the_limit_is_refused(folder):
    assert ask(shelter(folder), lambda: tried_memory(2 << 30))[0] == "MemoryError"


def tried_memory(n: int) -> str:
    try:
        bytearray(n)
    except MemoryError:
        return "MemoryError"
    return "done"


def test_killing_the_worker_kills_all_that_it_started(folder):
    place = shelter(folder)
    running = start(place, [], 30, lambda: [os.fork(), os.fork(), time.sleep(60)])
    time.sleep(0.2)
    running.kill()
    assert running.ended(wait=True) == "signal 9" and children(os.getpid()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="root is what can become another user here; without root every test is this one")
def test_a_user_without_privileges_can_shut_in_too(folder):
    os.chmod(folder, 0o777)
    answer, results = os.pipe()
    place = View(str(folder), SYSTEM)

    def as_nobody():
        inner = Shelter(NAMESPACE, Limits(memory=1 << 30, processes=16), NOBODY, place)
        return ask(inner, lambda: [os.getuid(), sorted(os.listdir("/")), len(os.listdir("/proc")) > 0, tried(lambda: open("/usr/x", "w"))])[0]

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
