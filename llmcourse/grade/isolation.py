"""Which isolation this machine allows: `tier("auto", …)`, found by really shutting a process in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict

from llmcourse.errors import CourseError

from .child_process import bare_environment, command
from .filesystem import VisibleFiles
from .sandbox import NAMESPACE, PROCESS
from .workers import can_fork

TRIAL_SECONDS, NOT_REFUSED = 60.0, 77
UNTRUSTED = (
    "untrusted: submissions ran as ordinary processes, which stops accidents only. One that attacks could have read "
    "the solutions or changed files"
)

NO_FILTER = (
    "this machine has no filter for system calls (seccomp): a submission could fill memory that no counter shows, and make "
    "the machine kill other programs"
)


def tier(wanted: str, visible: VisibleFiles, uid: int) -> tuple[str, str]:
    """The tier to use, and why it is not the better one ("" if it is).

    wanted: "auto", "namespace" or "process". Raises CourseError when "namespace" is asked for and cannot be had.
    """
    if wanted not in ("auto", NAMESPACE, PROCESS):
        raise CourseError(f"isolation is auto, namespace or process, not {wanted!r}")
    if wanted == PROCESS:
        return PROCESS, "asked for"
    why = why_no_namespaces(visible, uid)
    if why and wanted == NAMESPACE:
        raise CourseError(
            f"this machine does not allow the namespace isolation: {why}. Use --isolation process, in a container "
            "or on a machine of its own, or let root run the grader"
        )
    return (PROCESS, why) if why else (NAMESPACE, "")


def why_no_namespaces(visible: VisibleFiles, uid: int) -> str:
    """ "" when a process can be shut in here, otherwise what the machine said."""
    if not can_fork():
        return f"{sys.platform} has no namespaces"
    return _trial({"visible": asdict(visible), "uid": uid})


def reads_python(uid: int) -> bool:
    """Whether this user can read the Python installation; for root only, which becomes that user in a child."""
    return not _trial({"visible": None, "uid": uid})


def why_no_filter(uid: int) -> str:
    """ "" when workers here are refused memory that no counter shows, otherwise why not."""
    return _trial({"visible": None, "uid": uid, "filter": True}) if can_fork() else f"{sys.platform} has no seccomp"


def _trial(config: dict) -> str:
    done = subprocess.run(
        command("llmcourse.grade.isolation"),
        input=json.dumps(config).encode(),
        stdout=subprocess.PIPE,
        env=bare_environment("", "/", ""),
        timeout=TRIAL_SECONDS,
        start_new_session=True,
    )
    return done.stdout.decode(errors="replace").strip() or (
        f"it ended with code {done.returncode}" if done.returncode else ""
    )


def main() -> None:
    """The trial, in a process of its own: prints what went wrong, or nothing."""
    from .limits import Limits
    from .sandbox import Sandbox, start

    config = json.loads(sys.stdin.readline())
    uid = config["uid"]
    if config["visible"]:
        visible = VisibleFiles(**{k: tuple(v) if isinstance(v, list) else v for k, v in config["visible"].items()})
        sandbox = Sandbox(NAMESPACE, Limits(), uid, visible)
    else:
        sandbox = Sandbox(PROCESS, Limits(), uid, scratch="/")
    work = _is_refused if config.get("filter") else _import_something
    running = start(sandbox, [], TRIAL_SECONDS, work)
    pid, status = os.waitpid(running.child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == NOT_REFUSED:
        print("system calls are not refused")
    elif running.error or code:
        print(running.error or f"a process that is shut in cannot import Python's own modules (code {code})")


def _is_refused() -> None:
    try:
        os.close(os.memfd_create("trial"))
    except PermissionError:
        return
    os._exit(NOT_REFUSED)


def _import_something() -> None:
    import colorsys  # one that nothing has imported before

    colorsys.rgb_to_hsv(0, 0, 0)
