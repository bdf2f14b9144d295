"""GGUF files (llama.cpp's format) turned once into a Hugging Face style folder that loads quickly ever after.

Source of the format: the GGUF specification of the ggml project, and its Python package `gguf`, which reads it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from llmcourse.errors import UnknownModel, UnsupportedModel
from llmcourse.fetch import bar, disk_space, remove_leftovers
from llmcourse.model.config import ModelConfig
from llmcourse.model.gguf_meta import hf_config
from llmcourse.model.gguf_tokenizer import tokenizer_files
from llmcourse.model.tokenizer_files import write_json_files
from llmcourse.model.weights import tensor_shapes

# Llama files hold q and k rows in the order of interleaved rotary pairs; the other families keep their own order.
INTERLEAVED = ("llama", "mistral")
_LAYER = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
_OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_IN_CONFIG = ("rope_freqs.weight",)  # a tensor that becomes a setting of config.json
_ALIGN = 64  # bytes; tensors begin on a cache line
_SMALL_FILES = 16_000_000  # bytes, at most, of config and tokenizer files


def convert_gguf(file: Path, folder: Path, progress: bool = False) -> Path:
    """Write `folder` (config, generation config, tokenizer, chat template, float32 safetensors) from one GGUF file.

    `progress` shows a bar on stderr. The folder appears whole or not at all: it is built
    beside its place and renamed, and if another process finished first, that one's folder is kept. Returns `folder`.
    Raises UnknownModel for a file that is no GGUF, UnsupportedModel for an architecture, tokenizer or number format
    that cannot be converted exactly, DownloadFailed (with the bytes needed) when the disk is full.
    """
    file, folder = Path(file), Path(folder)
    reader = open_gguf(file)
    config = hf_config(reader, file.name)
    wanted = tensor_shapes(ModelConfig.from_hf(config, file.stem))  # refuses what the engine cannot run
    tokenizer = tokenizer_files(reader, file.name)
    tensors = [tensor for tensor in reader.tensors if tensor.name not in _IN_CONFIG]
    _check_tensors(tensors, wanted, file.name)
    n_bytes = sum(4 * int(tensor.n_elements) for tensor in tensors) + _SMALL_FILES
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder.parent, ".convert-*")
    with tempfile.TemporaryDirectory(prefix=".convert-", dir=folder.parent) as work:
        building = Path(work) / folder.name
        building.mkdir()
        with disk_space(folder.parent, n_bytes, f"converting {file.name}"):
            write_json_files(building, {"config.json": config, **tokenizer})
            with bar(n_bytes - _SMALL_FILES, f"converting {file.name} (once)", progress) as shown:
                _write_tensors(building / "model.safetensors", tensors, config, file.name, shown.update)
        try:
            os.replace(building, folder)
        except OSError:
            if not (folder / "config.json").is_file():
                raise
    return folder


def unpermute(rows: np.ndarray, n_heads: int) -> np.ndarray:
    """Undo llama.cpp's row order of q and k: [n_heads*D, …] with the rotary pairs (0, D/2), (1, D/2+1), … side by
    side in each head → the half-split order of the Hugging Face weights. Values are only moved."""
    pairs = rows.reshape(n_heads, rows.shape[0] // n_heads // 2, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def open_gguf(file: Path) -> Any:
    """An opened file of the `gguf` library. Raises UnknownModel for one that cannot be read."""
    from gguf import GGUFReader

    class Reader(GGUFReader):
        """Slices a plain array where the library slices a memmap: three times faster on 150,000 token strings."""

        @property
        def data(self) -> np.ndarray:
            return self._plain

        @data.setter
        def data(self, mapped: np.memmap) -> None:
            self._plain = mapped.view(np.ndarray)

    try:
        return Reader(file)
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise UnknownModel(f"{file} cannot be read as a GGUF file ({error}); fetch it again") from error


def _check_tensors(tensors: list[Any], wanted: dict[str, tuple[int, ...]], file_name: str) -> None:
    """Raise UnsupportedModel unless the file has the tensors of its config, each once: before gigabytes are written."""
    names = [_hf_name(tensor.name, file_name) for tensor in tensors]
    missing = [name for name in wanted if name not in names]
    extra = [tensor.name for tensor, name in zip(tensors, names) if name not in wanted or names.count(name) > 1]
    wrong = [tensor.name for tensor, name in zip(tensors, names)
             if name in wanted and tuple(int(n) for n in reversed(tensor.shape)) != wanted[name]]  # fmt: skip
    for what, which in [("lacks", missing), ("has tensors that belong to no such model:", extra),
                        ("has tensors of another shape than its sizes say:", wrong)]:  # fmt: skip
        if which:
            raise UnsupportedModel(f"{file_name} {what} {', '.join(which)}")


def _write_tensors(
    path: Path, tensors: list[Any], config: dict[str, Any], file_name: str, written: Callable[[int], object]
) -> None:
    """Write float32 safetensors: 8 bytes little-endian header length, JSON header, then the tensors without gaps.

    One tensor is expanded while the one before is written, so memory holds two.
    """
    tensors = sorted(tensors, key=lambda tensor: 4 * tensor.n_elements % _ALIGN != 0)  # odd sizes last
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        end = offset + 4 * int(tensor.n_elements)
        shape = [int(n) for n in reversed(tensor.shape)]
        header[_hf_name(tensor.name, file_name)] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGN)
    with open(path, "wb") as out, ThreadPoolExecutor(max_workers=1) as writer:
        writing = writer.submit(out.write, len(text).to_bytes(8, "little") + text)
        for values in _expanded(tensors, config, file_name):
            writing.result()
            writing = writer.submit(out.write, values.data)
            written(values.nbytes)
        writing.result()


def _expanded(tensors: list[Any], config: dict[str, Any], file_name: str) -> Iterator[np.ndarray]:
    """Each tensor as contiguous float32, with the rows of q and k in the Hugging Face order."""
    from gguf import dequantize

    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for tensor in tensors:
        try:
            values = dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError as error:
            raise UnsupportedModel(
                f"{file_name}: tensor {tensor.name} is {tensor.tensor_type.name}, which the gguf library cannot expand"
            ) from error
        part = tensor.name.split(".")[-2]
        if config["model_type"] in INTERLEAVED and part in heads:
            values = unpermute(values, heads[part])
        yield np.ascontiguousarray(values, dtype="<f4")


def _hf_name(name: str, file_name: str) -> str:
    """`blk.3.attn_q.weight` → `model.layers.3.self_attn.q_proj.weight`; UnsupportedModel names any other tensor."""
    stem, _, kind = name.rpartition(".")
    if stem in _OUTSIDE:
        return f"{_OUTSIDE[stem]}.{kind}"
    parts = stem.split(".")
    if len(parts) == 3 and parts[0] == "blk" and parts[2] in _LAYER:
        return f"model.layers.{parts[1]}.{_LAYER[parts[2]]}.{kind}"
    raise UnsupportedModel(f"{file_name} has a tensor {name!r}, which belongs to no model that the engine runs")
