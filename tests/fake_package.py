"""A small installable wheel with one data file, for tests of fetching: real format, no network."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from llmcourse.fetch import Package, Remote

DATA = bytes(range(256)) * 1200  # 300 kB
MEMBER = "course_fake/data/numbers.bin"


def make_wheel(folder: Path, data: bytes = DATA, also: tuple[Remote, ...] = ()) -> Package:
    """Write `course_fake-1.0-py3-none-any.whl` into `folder`; return the Package that pins exactly this file."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "course_fake-1.0-py3-none-any.whl"
    info = "course_fake-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as out:
        out.writestr(MEMBER, data)
        out.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: course-fake\nVersion: 1.0\n")
        out.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        out.writestr(f"{info}/RECORD", "")
    return Package("fake", "course-fake==1.0", remote(wheel), also)


def remote(file: Path) -> Remote:
    """The Remote that pins a file as it is now."""
    content = file.read_bytes()
    return Remote(file.name, hashlib.sha256(content).hexdigest(), len(content))
