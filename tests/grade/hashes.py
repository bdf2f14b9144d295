"""What a folder holds, as one value: to see that nothing in it has changed."""

from __future__ import annotations

import hashlib
from pathlib import Path


def tree(folder: Path, without: Path | None = None) -> dict[str, str]:
    """Relative path → sha256 of every file, link target and folder mark below `folder`, less what is in `without`."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if without and (path == without or without in path.parents) or "__pycache__" in path.parts:
            continue
        if path.is_symlink():
            content = str(path.readlink()).encode()
        else:
            content = path.read_bytes() if path.is_file() else b"folder"
        found[path.relative_to(folder).as_posix()] = hashlib.sha256(
            content + oct(path.lstat().st_mode).encode()
        ).hexdigest()
    return found
