"""Where models come from: the default one, a local folder, a GGUF file, or a Hugging Face hub id."""

from __future__ import annotations

import os
from pathlib import Path

from llmcourse.fetch import cache_dir
from llmcourse.model.download import DEFAULT_MODEL, default_model_folder

__all__ = ["DEFAULT_MODEL", "cache_dir", "model_folder"]


def model_folder(name: str | os.PathLike[str] | None = None) -> Path:
    """A Hugging Face style folder for `name`: None or the default's name, a folder, a .gguf file, or a hub id."""
    if name is None or str(name) == DEFAULT_MODEL:
        return default_model_folder()
    return Path(name)
