"""A model or a tokenizer by name, on the right device and in the right dtype: one call each."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch

from llmcourse.errors import DeviceUnavailable, UnsupportedModel
from llmcourse.model.config import load_config
from llmcourse.model.hub import model_folder, shown_name, tokenizer_folder
from llmcourse.model.weights import load_weights

if TYPE_CHECKING:
    from llmcourse.model.llama import Llama
    from llmcourse.text.tokenizer import Tokenizer

QUANTS = ("none", "native")
_DTYPES = {
    "float32": torch.float32, "fp32": torch.float32, "bfloat16": torch.bfloat16, "bf16": torch.bfloat16,
    "float16": torch.float16, "fp16": torch.float16, "float64": torch.float64, "fp64": torch.float64,
}  # fmt: skip


def load_model(
    name: str | os.PathLike[str] | None = None,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "auto",
    quant: str = "none",
) -> Llama:
    """Load a Llama-family model and put its weights on a device, ready to compute.

    `name`: None for the default model (fetched on first use), a folder of safetensors, a .gguf file, or a hub id.
    `device` and `dtype`: see `choose_device` and `choose_dtype`. `quant`: "none", or "native" for a GGUF's own packed
    weights, computed on the CPU as they are; where that cannot be, floats are loaded and a line says why. Raises UnknownModel, UnsupportedModel,
    WeightMismatch, DownloadFailed, DeviceUnavailable, OutOfMemory.
    """
    from llmcourse.model.llama import Llama

    if quant not in QUANTS:
        raise ValueError(f"quant {quant!r} is not one of {', '.join(QUANTS)}")
    if quant == "native":
        from llmcourse.ops.numba.fits import why_no_kernels
        from llmcourse.ops.numba.table import say_once

        reason = why_no_kernels() or (f"device {device} was asked for" if str(device) not in ("auto", "cpu") else None)
        if reason is None:
            from llmcourse.ops.numba.native import load_native

            try:
                return load_native(name)
            except UnsupportedModel as error:
                reason = str(error)
        say_once(f"quant native is left out, and float weights are loaded: {reason}")
    where = choose_device(device)
    number = choose_dtype(dtype, where)
    folder = model_folder(name)
    config = load_config(folder, shown_name(name))
    return Llama(config, load_weights(folder, config, number, where), source=str(folder))


def load_tokenizer(name: str | os.PathLike[str] | None = None) -> Tokenizer:
    """The tokenizer of a model by the names that `load_model` takes, or the GPT-2 vocabulary alone by "gpt2".

    Raises UnknownModel, DownloadFailed, TokenizerError.
    """
    from llmcourse.text.tokenizer import Tokenizer

    return Tokenizer.from_folder(tokenizer_folder(name))


def choose_device(device: str | torch.device = "auto") -> torch.device:
    """The device called "cpu", "cuda", "cuda:1", "mps"; "auto" is the first CUDA card if there is one, else the CPU.

    Apple's "mps" is used only when asked for: its results are not checked against the reference in this project's
    tests. Raises DeviceUnavailable, which names what this machine has.
    """
    available = ["cpu"]
    if torch.cuda.is_available():
        available += ["cuda", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        available.append("mps")
    if str(device) == "auto":
        return torch.device("cuda" if "cuda" in available else "cpu")
    if str(device) not in available:
        raise DeviceUnavailable(f"device {str(device)!r} is not available; this machine has {', '.join(available)}")
    return torch.device(device)


def choose_dtype(dtype: str | torch.dtype, device: torch.device) -> torch.dtype:
    """A number type by name ("float32", "bf16", …) or as torch.dtype; "auto" is float32 on the CPU, bfloat16 on a
    CUDA card that computes it natively, float16 elsewhere. Raises DeviceUnavailable for any other."""
    if isinstance(dtype, torch.dtype):
        chosen = dtype
    elif dtype == "auto":
        if device.type == "cpu":
            return torch.float32
        native = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if native else torch.float16
    elif dtype in _DTYPES:
        chosen = _DTYPES[dtype]
    else:
        raise DeviceUnavailable(f"dtype {dtype!r} is not one of auto, {', '.join(_DTYPES)}")
    if chosen not in _DTYPES.values() or (device.type == "mps" and chosen == torch.float64):
        raise DeviceUnavailable(f"dtype {chosen} is not available on {device}; use one of auto, {', '.join(_DTYPES)}")
    return chosen
