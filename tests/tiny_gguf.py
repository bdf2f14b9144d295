"""Small GGUF files of known content, written with the `gguf` library: the oracle of the converter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from gguf.quants import quantize

HEADS, KV_HEADS, HEAD_DIM, WIDTH, FFN, LAYERS, CONTEXT = 6, 2, 16, 96, 160, 2, 512
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
_F32, _F16 = GGMLQuantizationType.F32, GGMLQuantizationType.F16
_Q4_1, _Q8_0 = GGMLQuantizationType.Q4_1, GGMLQuantizationType.Q8_0
_TYPES = {"attn_q": _Q4_1, "attn_k": _Q8_0, "attn_v": _F16, "token_embd": _Q8_0, "output": _F16}


def vocabulary() -> tuple[list[str], list[str]]:
    """Tokens (specials, the letters of all 256 bytes, merged ones) and merges, in id and rank order."""
    from tokenizers.pre_tokenizers import ByteLevel

    merges = ["Ġ t", "h e", "Ġt he", "i n", "Ġ a", "Ġ Ġ", "1 2"]
    return SPECIAL + sorted(ByteLevel.alphabet()) + [merge.replace(" ", "") for merge in merges], merges


def tiny_tensors(seed: int = 0, *, head: bool = False, bias: bool = False, qk_norm: bool = False) -> dict[str, Any]:
    """GGUF name → (float32 values before quantization, number type in the file)."""
    rng = np.random.default_rng(seed)
    q, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (len(vocabulary()[0]), WIDTH)}
    for i in range(LAYERS):
        layer = {
            "attn_norm": (WIDTH,), "attn_q": (q, WIDTH), "attn_k": (kv, WIDTH), "attn_v": (kv, WIDTH),
            "attn_output": (WIDTH, q), "ffn_norm": (WIDTH,), "ffn_gate": (FFN, WIDTH), "ffn_up": (FFN, WIDTH),
            "ffn_down": (WIDTH, FFN),
        }  # fmt: skip
        if qk_norm:
            layer |= {"attn_q_norm": (HEAD_DIM,), "attn_k_norm": (HEAD_DIM,)}
        shapes |= {f"blk.{i}.{name}.weight": shape for name, shape in layer.items()}
        if bias:
            shapes |= {f"blk.{i}.{name}.bias": (n,) for name, n in (("attn_q", q), ("attn_k", kv), ("attn_v", kv))}
    shapes["output_norm.weight"] = (WIDTH,)
    if head:
        shapes["output.weight"] = shapes["token_embd.weight"]
    tensors = {}
    for name, shape in shapes.items():
        part = name.split(".")[-2]
        values = rng.standard_normal(shape, dtype=np.float32) * (0.3 if len(shape) == 1 else shape[-1] ** -0.5)
        kind = _F32 if len(shape) == 1 else _TYPES.get(part, _F32)
        tensors[name] = (values + ("norm" in part), kind)
    return tensors


def write_gguf(
    file: Path,
    tensors: dict[str, Any],
    arch: str = "llama",
    pre: str = "smollm",
    model: str = "gpt2",
    extra: dict[str, Any] | None = None,
    eos: int = 2,
    eot: int | None = 0,
    pieces: list[tuple[str, float, TokenType]] | None = None,
) -> Path:
    """Write one GGUF file; `extra` are more fields, name → str, float, bool or int.

    pieces: a SentencePiece vocabulary (token, score, type) to write instead of the byte-level one.
    """
    tokens, merges = vocabulary()
    writer = GGUFWriter(file, arch)
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(70_000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    if pieces is None:
        writer.add_token_list(tokens)
        writer.add_token_types([TokenType.CONTROL] * len(SPECIAL) + [TokenType.NORMAL] * (len(tokens) - len(SPECIAL)))
        writer.add_token_merges(merges)
    else:
        writer.add_token_list([token for token, _, _ in pieces])
        writer.add_token_scores([score for _, score, _ in pieces])
        writer.add_token_types([kind for _, _, kind in pieces])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(eos)
    if eot is not None:
        writer.add_eot_token_id(eot)
    writer.add_chat_template(TEMPLATE)
    add = {str: writer.add_string, float: writer.add_float32, bool: writer.add_bool, int: writer.add_uint32}
    for name, value in (extra or {}).items():
        add[type(value)](name, value)
    for name, (values, kind) in tensors.items():
        writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
