"""The cache folder: where it is, how files get into it whole, one process at a time, and on a disk that fills up."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llmcourse.errors import DownloadFailed

_LEFTOVER_S = 24 * 3600
_PATIENCE_S = 1.0  # seconds of silence before saying that another process is waited for


def cache_dir() -> Path:
    """Where models and data are kept: $LLMCOURSE_CACHE, else the user's cache folder of this operating system."""
    chosen = os.environ.get("LLMCOURSE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("llmcourse")


@contextmanager
def workspace() -> Iterator[Path]:
    """A temporary folder inside the cache folder (so that finished files can be renamed into place), then removed."""
    _make_cache_dir()
    remove_leftovers(cache_dir(), ".work-*")
    with tempfile.TemporaryDirectory(prefix=".work-", dir=cache_dir()) as work:
        yield Path(work)


def remove_leftovers(folder: Path, pattern: str) -> None:
    """Delete what runs that were killed left under this pattern a day ago or earlier (later ones may be at work)."""
    for left in folder.glob(pattern):
        try:
            old = time.time() - left.stat().st_mtime > _LEFTOVER_S
        except FileNotFoundError:
            continue  # its owner has just finished
        if old:
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Let one process at a time into the block, over all processes that share the cache folder.

    The operating system drops the lock of a process that dies. A file system without locks is no error: what is
    made inside must appear by one rename anyway, the lock only saves doing it twice.
    """
    from filelock import FileLock, Timeout

    _make_cache_dir()
    lock = FileLock(cache_dir() / f".{name}.lock")
    try:
        try:
            lock.acquire(timeout=_PATIENCE_S)
        except Timeout:
            print(f"waiting for another process that is preparing {name} in {cache_dir()}", file=sys.stderr)
            lock.acquire()
    except (OSError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        lock.release()


@contextmanager
def disk_space(folder: Path, n_bytes: int, what: str) -> Iterator[None]:
    """Check that `n_bytes` fit beside `folder`, and turn a disk that fills up inside the block into DownloadFailed."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    message = (
        f"{what} needs {n_bytes:,} bytes ({n_bytes / 1e6:.0f} MB) in {folder}, where {{free:,}} bytes are free; "
        "make room, or set LLMCOURSE_CACHE to a folder on a larger disk"
    )
    if free < n_bytes:
        raise DownloadFailed(message.format(free=free))
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DownloadFailed(message.format(free=shutil.disk_usage(existing).free)) from error


def bar(total: int | None, what: str, shown: bool):
    """A progress bar in bytes on stderr (hidden when not `shown`)."""
    from tqdm import tqdm

    return tqdm(total=total, desc=what, unit="B", unit_scale=True, disable=not shown, file=sys.stderr, leave=False)


def _make_cache_dir() -> None:
    try:
        cache_dir().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DownloadFailed(
            f"the cache folder {cache_dir()} cannot be made ({error.strerror}); set LLMCOURSE_CACHE to another"
        ) from error
