"""A model on a GGUF's own bits: what `--quant native` loads. There is no float model anywhere."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import torch

from llmcourse.errors import UnsupportedModel
from llmcourse.fetch import cache_dir, one_at_a_time
from llmcourse.model.config import ModelConfig, load_config
from llmcourse.model.gguf import open_gguf
from llmcourse.model.gguf_meta import hf_config
from llmcourse.model.gguf_tokenizer import tokenizer_files
from llmcourse.model.hub import gguf_file, shown_name
from llmcourse.model.tokenizer_files import write_json_files
from llmcourse.ops.numba import packed_file
from llmcourse.ops.numba.fits import why_not
from llmcourse.ops.numba.gguf_source import from_gguf
from llmcourse.ops.numba.table import NUMBA, pool_for
from llmcourse.ops.numba.weights import n_bytes, stack


class PackedModel:
    """A model whose linear weights are packed tiles, mapped from a file. It has no stages: only a prepared step runs it.

    Args:
        config: its ModelConfig.
        packed: the Stack of its weights.
        kinds: how each role is stored, as GGUF names it.
        source: the folder of its tokenizer.
    """

    device, dtype, quant = torch.device("cpu"), torch.float32, "native"

    def __init__(self, config, packed, kinds: dict[str, str], source: str):
        self.config, self.packed_weights, self.kinds, self.source = config, packed, kinds, source

    @property
    def name(self) -> str:
        """The model's name."""
        return self.config.name

    @property
    def nbytes(self) -> int:
        """Bytes of all weights."""
        return n_bytes(self.packed_weights)

    def new_cache(self, spec: str, parts):
        """A pool, whose keys and values are float16. Raises UnsupportedModel for another kind of cache."""
        if spec != "contiguous":
            raise UnsupportedModel(f"packed weights are computed on with a cache that keeps everything, not with {spec!r}: "
                                   "leave --quant or --cache out")  # fmt: skip
        return pool_for(self.config, torch.float16, spec)

    def prepared(self, parts, cache, limits):
        """The step of a table that computes on packed weights. Raises UnsupportedModel for one that goes by stages."""
        step = parts.prepare(self, cache, limits) if parts.prepare and cache.kind in parts.takes else None
        if step is None:
            raise UnsupportedModel(
                f"the weights of {self.name} are packed as in the file, and only the table 'numba' multiplies with them; "
                f"table {parts.name!r} with cache {cache.spec!r} goes stage by stage: leave --quant out for it"
            )
        return step

    @property
    def parts(self):
        """The table that computes on packed weights."""
        return NUMBA

    def __repr__(self) -> str:
        kinds = ", ".join(sorted(set(self.kinds.values())))
        return f"<{self.name}: {self.config.n_params / 1e6:.1f} M parameters, {kinds}, {self.nbytes / 1e6:.1f} MB>"


def load_native(name: str | os.PathLike[str] | None = None) -> PackedModel:
    """A GGUF file by name (None: the default model) on its own bits.

    The first time the tiles are packed and kept in the cache folder; later they are mapped, after their hash was compared.
    Raises UnsupportedModel for what is no GGUF file, or holds what no kernel reads; the message says which.
    """
    file = gguf_file(name)
    facts = file.stat()
    key = {"file": str(file), "bytes": facts.st_size, "time": facts.st_mtime_ns}
    place = hashlib.sha256(str(file).encode()).hexdigest()[:8]
    folder = cache_dir() / "models" / f"{file.stem}-{place}-native"
    kept = folder / "weights.tiles"
    found = packed_file.read(kept, key)
    if found is None:
        with one_at_a_time(folder.name):
            found = packed_file.read(kept, key) or _pack(file, folder, key)
    config = load_config(folder, shown_name(name))
    return PackedModel(config, *found, source=str(folder))


def _pack(file: Path, folder: Path, key: dict):
    """Write the folder: config, tokenizer, tiles."""
    reader = open_gguf(file)
    hf = hf_config(reader, file.name)
    config = ModelConfig.from_hf(hf, file.stem)
    reason = why_not(config)
    if reason:
        raise UnsupportedModel(f"{file.name}: {reason}; leave --quant out")
    weights, kinds = stack(config, from_gguf(file))
    folder.mkdir(parents=True, exist_ok=True)
    write_json_files(folder, {"config.json": hf, **tokenizer_files(reader, file.name)})
    packed_file.write(folder / "weights.tiles", weights, kinds, key)
    return packed_file.read(folder / "weights.tiles", key)

