"""Where models come from: the default one, a local folder, a GGUF file, or a Hugging Face hub id."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from llmcourse.errors import UnknownModel, UnsupportedModel
from llmcourse.fetch import cache_dir
from llmcourse.model.download import (
    CONVERSION, DEFAULT_MODEL, converted, default_gguf, default_model_folder, download, gpt2_vocab_folder,
)  # fmt: skip

__all__ = ["DEFAULT_MODEL", "cache_dir", "download", "model_folder", "shown_name", "tokenizer_folder"]

_TOKENIZER_FILES = ["*.json", "*.jinja"]
_MODEL_FILES = [*_TOKENIZER_FILES, "*.safetensors"]  # never pickles: opening one can run code
_NOT_WANTED = ["*/*", "consolidated*"]  # subfolders and second copies of the weights in other layouts
_WORKS = (
    f"What works: nothing at all or {DEFAULT_MODEL!r} (the default model), a folder with config.json and "
    "*.safetensors, a .gguf file, or a hub id such as 'HuggingFaceTB/SmolLM2-360M-Instruct'"
)


def model_folder(name: str | os.PathLike[str] | None = None) -> Path:
    """A Hugging Face style folder (config, tokenizer, safetensors) of the model called `name`.

    None or "SmolLM2-135M-Instruct" is the default model, fetched and converted on first use; a folder is taken as it
    is; a .gguf file is converted into the cache on first use; "owner/name" is fetched from the hub, or found in its
    cache (HF_HOME), as the hub's own environment variables say. Raises UnknownModel, which lists what would work,
    UnsupportedModel, DownloadFailed.
    """
    return _folder(name, _MODEL_FILES)


def tokenizer_folder(name: str | os.PathLike[str] | None = None) -> Path:
    """Like `model_folder`, but a hub model's weights are not fetched, and "gpt2" is the GPT-2 vocabulary."""
    if name is not None and str(name) == "gpt2":
        return gpt2_vocab_folder()
    return _folder(name, _TOKENIZER_FILES)


def gguf_file(name: str | os.PathLike[str] | None = None) -> Path:
    """The GGUF file called `name`; None is the default model's, fetched on first use. Raises UnsupportedModel for a folder or
    a hub id, UnknownModel for a file that is not there, DownloadFailed."""
    if name is None or str(name) == DEFAULT_MODEL:
        return default_gguf()
    path = Path(name).expanduser()
    if path.suffix != ".gguf":
        raise UnsupportedModel(f"{str(name)!r} is no .gguf file: only such a file has packed weights of its own to compute with")
    if not path.is_file():
        raise UnknownModel(f"there is no file {str(name)!r}. {_WORKS}")
    return path.resolve()


def shown_name(name: str | os.PathLike[str] | None) -> str:
    """What a model is called in output: the default's name, a folder's or file's own name, or the hub id."""
    if name is None:
        return DEFAULT_MODEL
    path = Path(name).expanduser()
    if path.is_dir():
        return path.resolve().name
    return path.stem if path.suffix == ".gguf" else str(name)


def _folder(name: str | os.PathLike[str] | None, patterns: list[str]) -> Path:
    if name is None or str(name) == DEFAULT_MODEL:
        return default_model_folder()
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.suffix == ".gguf" and path.is_file():
        return _converted_once(path.resolve())
    text = str(name)
    if text.count("/") == 1 and text[0] not in "./~\\" and path.suffix != ".gguf":
        return _from_hub(text, patterns)
    raise UnknownModel(f"there is no model, folder or file {text!r}. {_WORKS}")


def _converted_once(file: Path) -> Path:
    """The cached conversion of a GGUF file; one is made for every version (place, size, time) of the file."""
    facts = file.stat()
    key = hashlib.sha256(f"{file}\0{facts.st_size}\0{facts.st_mtime_ns}".encode()).hexdigest()[:12]
    folder = cache_dir() / "models" / f"{file.stem}-{key}-v{CONVERSION}"
    return folder if (folder / "config.json").is_file() else converted(file, folder)


def _from_hub(repo: str, patterns: list[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(repo, allow_patterns=patterns, ignore_patterns=_NOT_WANTED))
    except (GatedRepoError, HFValidationError, RepositoryNotFoundError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UnknownModel(f"the hub does not give out a model {repo!r} ({reason}). {_WORKS}") from error
    except Exception as error:  # whatever the hub's client and its HTTP library raise when a network is missing
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UnknownModel(
            f"model {repo!r} is not in the hub's cache here and no hub can be reached ({reason}). Use the default "
            f"model (no name), a local folder or .gguf file, or set HF_HOME to a cache that has it"
        ) from error
