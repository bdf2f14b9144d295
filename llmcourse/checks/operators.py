"""Refuse PyTorch's own operators where every road to them ends: in its dispatcher.

`torch.softmax`, `Tensor.softmax`, `torch.ops.aten.…`, a scripted function, `map`, `functools.partial` and a thread of an
executor all arrive at the same few operators. While an exercise that forbids one is probed, those have a Python kernel
that asks who called. Source: pytorch.org/docs, torch.library.Library ("IMPL").
"""

from __future__ import annotations

import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

_SOFTMAX = (
    "_softmax", "_softmax.out", "_log_softmax", "_log_softmax.out", "_safe_softmax",
    "logsumexp", "logsumexp.out", "logcumsumexp", "_logcumsumexp", "_masked_softmax", "_sparse_softmax",
    "_sparse_log_softmax",
)  # fmt: skip
_ATTENTION = (
    "scaled_dot_product_attention", "_scaled_dot_product_attention_math", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_fused_attention_overrideable",
    "_flash_attention_forward", "_efficient_attention_forward", "_native_multi_head_attention",
    "_transformer_encoder_layer_fwd",
)  # fmt: skip
_BEHIND = {
    "torch.softmax": (*_SOFTMAX, *_ATTENTION),
    "torch.nn.functional.scaled_dot_product_attention": _ATTENTION,
    "torch.nn.functional.embedding": ("embedding", "embedding.out", "_embedding_bag", "_embedding_bag_forward_only"),
    "torch.nn.functional.cosine_similarity": ("cosine_similarity",),
    "torch.cdist": ("cdist", "_cdist_forward", "_cdist_forward.out", "_euclidean_dist", "_euclidean_dist.out"),
    "torch.nn.functional.rms_norm": ("rms_norm", "_fused_rms_norm"),
    "torch.quantile": ("quantile", "quantile.scalar", "quantile.out", "quantile.scalar_out", "nanquantile",
                       "nanquantile.scalar"),
    "torch.quantize_per_tensor": ("quantize_per_tensor", "quantize_per_tensor.tensor_qparams"),
    "torch.quantize_per_channel": ("quantize_per_channel",),
    "torch.fake_quantize_per_tensor_affine": (
        "fake_quantize_per_tensor_affine", "fake_quantize_per_tensor_affine_cachemask",
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams"),
}  # fmt: skip
_NOT_DENSE = (
    "to_mkldnn", "_to_sparse", "_to_sparse.sparse_dim", "_to_sparse_csr", "_to_sparse_csc", "_to_sparse_bsr",
    "_to_sparse_bsc", "_sparse_coo_tensor_with_dims_and_tensors", "_nested_tensor_from_tensor_list",
    "_nested_view_from_buffer", "_nested_from_padded",
)  # fmt: skip
NOT_DENSE = "tensors that are not dense"
_installing = threading.Lock()


def behind(forbids: Iterable[str]) -> dict[str, str]:
    """The operators to refuse for these forbidden names: {operator: the name that a learner is told}."""
    found: dict[str, str] = {}
    for name in forbids:
        for operator in _BEHIND.get(name, ()):
            found.setdefault(operator, name)
    return {**dict.fromkeys(_NOT_DENSE, NOT_DENSE), **found} if found else {}


@contextmanager
def refused(operators: dict[str, str], is_allowed: Callable[[], bool], found: list[str]) -> Iterator[None]:
    """While the body runs, each call of these operators that `is_allowed()` denies is noted in `found` and raises.

    operators: see `behind`. Nothing is done where there are none, or torch is not imported. An allowed call gets the
    kernel that was there before, which PyTorch gives back from 2.9 on; an older one cannot be called meanwhile.
    """
    torch = sys.modules.get("torch")
    if torch is None or not operators:
        yield
        return
    with _installing:  # another thread's check in the same process waits for this one
        library = _install(torch, operators, is_allowed, found)
        try:
            yield
        finally:
            library._destroy()


def _install(torch, operators: dict[str, str], is_allowed: Callable[[], bool], found: list[str]):
    library = torch.library.Library("aten", "IMPL")
    more = {"allow_override": True} if "allow_override" in inspect.signature(library.impl).parameters else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there was a kernel before is the point
        for operator, said in operators.items():
            for backend in _backends(torch) if _exists(torch, operator) else ():
                kernel = _kernel(_kept(torch, operator, backend), operator, said, is_allowed, found)
                library.impl(operator, kernel, backend, with_keyset=True, **more)
    return library


def _exists(torch, operator: str) -> bool:
    """Whether this PyTorch has it."""
    name, _, overload = operator.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    return packet is not None and (overload or "default") in packet.overloads()


def _backends(torch) -> list[str]:
    """Dispatch keys of the dense tensors that there can be here."""
    return ["CPU", *(["CUDA"] if torch.version.cuda else []), *(["MPS"] if sys.platform == "darwin" else [])]


def _kept(torch, operator: str, backend: str):
    """The kernel that is there now, None where this PyTorch does not give it away or there is none."""
    get_kernel = getattr(torch.library, "get_kernel", None)
    if get_kernel is None:
        return None
    try:
        return get_kernel(f"aten::{operator}", backend)
    except RuntimeError:
        return None  # no kernel for this backend


def _kernel(kept, operator: str, said: str, is_allowed: Callable[[], bool], found: list[str]) -> Callable:
    def kernel(keys, *arguments, **named):
        if is_allowed():
            if kept is None:
                raise NotImplementedError(f"aten::{operator} cannot be called while answers are checked with this PyTorch")
            return kept.call_boxed(keys, *arguments, **named)
        if said not in found:
            found.append(said)
        raise RuntimeError(f"{said} may not be called here: write that part yourself")

    return kernel
