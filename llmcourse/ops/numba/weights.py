"""A model's weights in tiles, all layers of a role in one packed weight: from a float model, or from a file's own bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch

from llmcourse.errors import UnsupportedModel
from llmcourse.ops.numba import full, q4_0, q4_1, q8_0
from llmcourse.ops.numba.linear import NO_BIAS
from llmcourse.ops.numba.step import Stack

PACK = {
    "Q4_1": q4_1.pack, "Q4_0": q4_0.pack, "Q8_0": q8_0.pack,
    "F32": full.pack, "F16": full.pack, "BF16": full.pack,
}  # fmt: skip
KIND = {
    "Q4_1": q4_1.Q4_1, "Q4_0": q4_0.Q4_0, "Q8_0": q8_0.Q8_0, "F32": full.Full, "F16": full.Full, "BF16": full.Full,
}  # fmt: skip
ROLES = {"qkv": ("q", "k", "v"), "o": ("o",), "gate_up": ("gate", "up"), "down": ("down",)}


class Rows(NamedTuple):
    """A linear weight as it is stored: `kind` as GGUF names it, `raw` [o, bytes] uint8 or [o, i] numbers.

    float16 stands as uint16 and bfloat16 as int16: their bits.
    """

    kind: str
    raw: np.ndarray


class Source(NamedTuple):
    """Where weights come from.

    linear(layer or None, name): Rows of q, k, v, o, gate, up, down of a layer, or of "embed" and "head".
    vector(layer or None, name): float32 values of a norm or a bias, or None where the model has none.
    """

    linear: Callable[[int | None, str], Rows]
    vector: Callable[[int | None, str], np.ndarray | None]


def from_model(weights) -> Source:
    """The weights of a loaded `Llama`, in the dtype that they have: float32, bfloat16 or float16."""

    def at(layer: int | None, name: str):
        return getattr(weights if layer is None else weights.layers[layer], name)

    def vector(layer: int | None, name: str) -> np.ndarray | None:
        values = at(layer, name)
        return None if values is None else values.float().contiguous().numpy()

    return Source(lambda layer, name: as_rows(at(layer, name)), vector)


def as_rows(values: torch.Tensor) -> Rows:
    """A tensor's memory as numpy holds it."""
    values = values.contiguous()
    if values.dtype == torch.bfloat16:
        return Rows("BF16", values.view(torch.int16).numpy())
    if values.dtype == torch.float16:
        return Rows("F16", values.view(torch.int16).numpy().view(np.uint16))
    if values.dtype == torch.float32:
        return Rows("F32", values.numpy())
    raise UnsupportedModel(f"weights in {values.dtype}: the kernels know float32, bfloat16 and float16")


def stack(config, source: Source) -> tuple[Stack, dict[str, str]]:
    """All weights in tiles, and the kind of each role.

    Raises UnsupportedModel where a role has several kinds, or one that no kernel reads.
    """
    packed, kinds = {}, {}
    for role in ROLES:
        packed[role], kinds[role] = _together(role, [joined(config, source, layer, role) for layer in range(config.n_layers)])
    packed["head"], kinds["head"] = _together("head", [source.linear(None, "head")])
    if config.tied:
        packed["embed"], kinds["embed"] = packed["head"], kinds["head"]
    else:
        packed["embed"], kinds["embed"] = _together("embed", [source.linear(None, "embed")])
    return Stack(**packed, **vectors(config, source)), kinds


def joined(config, source: Source, layer: int, role: str) -> Rows:
    """The rows of a role of one layer: q, k, v below each other; 16 gates, their 16 ups, …"""
    each = [source.linear(layer, name) for name in ROLES[role]]
    kinds = {rows.kind for rows in each}
    if len(kinds) > 1:
        raise UnsupportedModel(f"layer {layer}: {', '.join(ROLES[role])} are stored as {', '.join(sorted(kinds))}: the "
                               "kernels take them together, in one kind")  # fmt: skip
    raw = [rows.raw for rows in each]
    if role == "gate_up":
        return Rows(each[0].kind, np.stack([a.reshape(-1, 16, a.shape[1]) for a in raw], 1).reshape(-1, raw[0].shape[1]))
    return Rows(each[0].kind, np.concatenate(raw) if len(raw) > 1 else raw[0])


def _together(role: str, each: list[Rows]):
    """One packed weight of all layers' rows: tiles follow each other, so packed parts can be joined."""
    kinds = sorted({rows.kind for rows in each})
    if len(kinds) > 1 or kinds[0] not in PACK:
        raise UnsupportedModel(f"the weights of {role} are stored as {', '.join(kinds)}; the kernels read one of "
                               f"{', '.join(PACK)} for all layers")  # fmt: skip
    parts = [PACK[kinds[0]](rows.raw) for rows in each]
    return type(parts[0])(*(np.concatenate(arrays) if len(arrays) > 1 else arrays[0] for arrays in zip(*parts))), kinds[0]


def vectors(config, source: Source) -> dict[str, np.ndarray]:
    """Norms and biases of all layers as float32, and the windows."""

    def all_layers(*names: str) -> np.ndarray:
        parts = [source.vector(layer, name) for layer in range(config.n_layers) for name in names]
        return NO_BIAS if parts[0] is None else np.concatenate(parts).astype(np.float32)

    return {
        "attn_norm": all_layers("attn_norm"), "mlp_norm": all_layers("mlp_norm"),
        "norm": source.vector(None, "norm").astype(np.float32),
        "qkv_bias": all_layers("q_bias", "k_bias", "v_bias"), "o_bias": all_layers("o_bias"),
        "q_norm": all_layers("q_norm"), "k_norm": all_layers("k_norm"), "windows": windows(config),
    }  # fmt: skip


def windows(config) -> np.ndarray:
    """The window of each layer, int64 [L]; 0: the layer sees everything."""
    each = config.windows or [None] * config.n_layers
    return np.array([window or 0 for window in each], np.int64)


def arrays_of(weights: Stack) -> Iterator[tuple[str, np.ndarray]]:
    """Every array with a name: role.field, or the vector's own."""
    for role, value in weights._asdict().items():
        if isinstance(value, np.ndarray):
            yield role, value
        else:
            yield from ((f"{role}.{field}", array) for field, array in value._asdict().items())


def rebuilt(arrays: dict[str, np.ndarray], kinds: dict[str, str]) -> Stack:
    """The stack of the arrays that `arrays_of` named."""
    made = {}
    for role in Stack._fields:
        if role in kinds:
            kind = KIND[kinds[role]]
            made[role] = kind(*(arrays[f"{role}.{field}"] for field in kind._fields))
        else:
            made[role] = arrays[role]
    return Stack(**made)


def n_bytes(weights: Stack) -> int:
    """Bytes of all arrays, one that has two names (a tied head) counted once."""
    return sum(array.nbytes for array in {id(array): array for _, array in arrays_of(weights)}.values())
