"""What of the file system a process sees that is shut in. Oracle: the description in grade/filesystem.py."""

from __future__ import annotations

import os
import sys

import pytest

from tests.grade.sandboxed import SYSTEM, ask, sandbox, tried

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="namespaces are Linux's")


def test_nothing_is_there_but_what_is_shown(folder):
    (folder / "seen").mkdir()
    (folder / "seen" / "file").write_text("x")
    (folder / "unseen").write_text("x")
    place = sandbox(folder, shown=(*SYSTEM, str(folder / "seen")))
    found, _ = ask(
        place,
        lambda: [
            sorted(os.listdir(folder)),
            os.listdir(folder / "seen"),
            os.path.exists("/home"),
            os.path.exists("/root"),
        ],
    )
    assert found == [["seen"], ["file"], False, False]


def test_what_is_hidden_in_what_is_shown_is_covered(folder):
    (folder / "package").mkdir()
    for name in ("__init__.py", "secret.py", "data.txt"):
        (folder / "package" / name).write_text("the secret")
    (folder / "package" / "inner").mkdir()
    (folder / "package" / "inner" / "more.txt").write_text("the secret")
    hidden = [str(folder / "package" / name) for name in ("secret.py", "data.txt", "inner", "absent")]
    place = sandbox(folder, shown=(*SYSTEM, str(folder / "package")), hidden=tuple(hidden))

    def look():
        return [
            (folder / "package" / name).read_text() for name in ("__init__.py", "secret.py", "data.txt")
        ] + os.listdir(hidden[2])

    (first, second, third), _ = ask(place, look)
    assert (first, third) == ("the secret", "") and "hidden" in second


def test_only_the_scratch_folder_can_be_written(folder):
    (folder / "seen").mkdir(mode=0o777)
    os.chmod(folder / "seen", 0o777)
    place = sandbox(folder, shown=(*SYSTEM, str(folder / "seen")))
    found, _ = ask(
        place,
        lambda: [
            tried(lambda: open(f"{where}/x", "w").write("x"))
            for where in (folder / "seen", "/", "/usr", "/etc", "/dev", "/tmp", ".")
        ],
    )
    assert found[-2:] == ["done", "done"] and not set(found[:-2]) & {"done"}
    assert os.listdir(folder / "seen") == []


def test_the_scratch_folder_is_new_each_time_and_of_limited_size(folder):
    place = sandbox(folder)

    def fill():
        for number in range(1000):
            with open(f"/tmp/{number}", "wb") as file:
                file.write(bytes(1 << 20))

    assert ask(place, lambda: [os.listdir("/tmp"), tried(fill)])[0] == [[], "OSError 28"]
    assert ask(place, lambda: os.listdir("/tmp"))[0] == []
