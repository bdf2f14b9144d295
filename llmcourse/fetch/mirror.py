"""Fetching a package's file from an http(s) address, for classrooms that keep a copy on their own network."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from llmcourse.errors import DownloadFailed
from llmcourse.fetch.cache import bar, cache_dir, disk_space
from llmcourse.fetch.package import Package, Remote, verified

_CHUNK = 1 << 18  # bytes read at once
_TIMEOUT_S = 60  # silence after which a connection counts as broken


def from_url(package: Package, address: str, work: Path, progress: bool) -> Path:
    """Fetch one of the package's files into `work`; returns its verified path.

    `address` is a file (its ending says which) or a folder that holds one of the files under its own name. A broken
    transfer leaves its part in the cache, and the next call asks the server for the rest. Raises DownloadFailed.
    """
    ending = Path(urllib.parse.urlsplit(address).path).suffix
    named = [want for want in package.files if Path(want.file).suffix == ending]
    if named:
        candidates = [(named[0], address)]
    else:
        candidates = [(want, f"{address.rstrip('/')}/{want.file}") for want in package.files]
    for want, url in candidates:
        if _fetch(want, url, progress):
            target = work / want.file
            os.replace(_part(want), target)
            return verified(target, want)
    tried = ", ".join(url for _, url in candidates)
    raise DownloadFailed(f"the mirror has no such file (404): {tried}; check the address, or copy the file by hand")


def _part(want: Remote) -> Path:
    return cache_dir() / f".{want.sha256[:16]}.part"


def _fetch(want: Remote, url: str, progress: bool) -> bool:
    """Bring the part file of `want` to its full length. False when the server has no such file."""
    part = _part(want)
    have = part.stat().st_size if part.is_file() else 0
    if have >= want.n_bytes:
        part.unlink()  # complete, yet never verified and moved: start again
        have = 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            resumed = answer.status == http.client.PARTIAL_CONTENT
            with disk_space(cache_dir(), want.n_bytes - have * resumed, want.file):
                _copy(answer, part, have if resumed else 0, want, progress)
    except urllib.error.HTTPError as error:
        if error.code == http.client.NOT_FOUND:
            return False
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)  # the mirror's file is shorter than the part: the next run starts again
        raise DownloadFailed(f"{url} answered {error.code} {error.reason}; check the address of the mirror") from error
    except (OSError, http.client.HTTPException) as error:
        raise DownloadFailed(
            f"{url} could not be fetched ({error}); run the same command again, it goes on where it stopped"
        ) from error
    return True


def _copy(answer: http.client.HTTPResponse, part: Path, have: int, want: Remote, progress: bool) -> None:
    """Stream the answer behind the `have` bytes that the part file keeps; never more than the file's known size."""
    with open(part, "r+b" if have else "wb") as out, bar(want.n_bytes, want.file, progress) as shown:
        out.truncate(have)
        out.seek(have)
        shown.update(have)
        while have <= want.n_bytes and (chunk := answer.read(_CHUNK)):
            out.write(chunk)
            shown.update(len(chunk))
            have += len(chunk)
    if have < want.n_bytes and answer.length:
        raise ConnectionError(f"the connection ended after {have:,} of {want.n_bytes:,} bytes")
