"""Run a function shut in, and learn what it returned and how it ended."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from llmcourse.grade.limits import Limits, worker_uid
from llmcourse.grade.filesystem import VisibleFiles
from llmcourse.grade.sandbox import NAMESPACE, PROCESS, Sandbox, start

SYSTEM = tuple(path for path in ("/usr", "/bin", "/lib", "/lib64") if os.path.exists(path))
LIMITS = Limits(memory=1 << 30, processes=16)


def sandbox(folder: Path, tier: str = NAMESPACE, *, shown: tuple = SYSTEM, hidden: tuple = ()) -> Sandbox:
    """A sandbox of this tier whose own folders are in `folder`."""
    uid, root, scratch = worker_uid(99), folder / "root", folder / "scratch"
    root.mkdir(exist_ok=True)
    scratch.mkdir(exist_ok=True)
    os.chown(scratch, uid, -1)
    if tier == PROCESS:
        return Sandbox(tier, LIMITS, uid, scratch=str(scratch))
    return Sandbox(tier, LIMITS, uid, VisibleFiles(str(root), shown, hidden))


def ask(place: Sandbox, question: Callable) -> tuple[object, str]:
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


def tried(action: Callable) -> str:
    """ "done", or the system's error."""
    try:
        action()
    except OSError as error:
        return f"{type(error).__name__} {error.errno}"
    return "done"
