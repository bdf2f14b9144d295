"""The tokenizer inside a GGUF file, written as the files that Hugging Face keeps beside a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llmcourse.errors import UnsupportedModel

_CONTROL, _USER_DEFINED = 3, 4  # token types of the GGUF specification
_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_QWEN2_SPLIT = _LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")


def tokenizer_files(fields: dict[str, Any], file: Path) -> dict[str, dict[str, Any]]:
    """File name → content of `tokenizer.json`, `tokenizer_config.json` and `generation_config.json`.

    Only byte-level BPE is converted, and only with a pre-tokenizer that is known by name. UnsupportedModel names
    any other.
    """

    def get(key: str, default: Any = None) -> Any:
        field = fields.get(f"tokenizer.{key}")
        return default if field is None else field.contents()

    kind, pre = get("ggml.model"), get("ggml.pre", "default")
    if kind != "gpt2" or pre not in _PRE_TOKENIZERS:
        raise UnsupportedModel(
            f"{file.name} has a tokenizer of kind {kind!r} with pre-tokenizer {pre!r}; byte-level BPE ('gpt2') with "
            f"{', '.join(_PRE_TOKENIZERS)} can be converted"
        )
    tokens = get("ggml.tokens")
    types = get("ggml.token_type", [1] * len(tokens))
    ids = {name: get(f"ggml.{name}_token_id") for name in ("bos", "eos", "eot", "unknown", "padding")}
    names = {name: None if i is None else tokens[i] for name, i in ids.items()}
    add_bos = bool(get("ggml.add_bos_token", False)) and ids["bos"] is not None
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": tokens[i], "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": kind == _CONTROL}
            for i, kind in enumerate(types) if kind in (_CONTROL, _USER_DEFINED)
        ],
        "normalizer": {"type": "NFC"} if pre == "qwen2" else None,
        "pre_tokenizer": _PRE_TOKENIZERS[pre],
        "post_processor": _begin_with(names["bos"], ids["bos"]) if add_bos else None,
        "decoder": _byte_level(use_regex=True),
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
            "ignore_merges": pre == "llama-bpe",
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in get("ggml.merges")],
        },
    }  # fmt: skip
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": names["bos"],
        "eos_token": names["eos"],
        "unk_token": names["unknown"],
        "pad_token": names["padding"],
        "add_bos_token": add_bos,
        "clean_up_tokenization_spaces": False,
        "chat_template": get("chat_template"),
    }
    ends = [ids[name] for name in ("eos", "eot") if ids[name] is not None]
    generation = {"bos_token_id": ids["bos"], "eos_token_id": list(dict.fromkeys(ends)), "pad_token_id": ids["padding"]}
    return {
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": {key: value for key, value in settings.items() if value is not None},
        "generation_config.json": {key: value for key, value in generation.items() if value is not None},
    }


def _byte_level(use_regex: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def _split_first(first: dict[str, Any], use_regex: bool) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": [first, _byte_level(use_regex)]}


def _split_by(pattern: str) -> dict[str, Any]:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return _split_first(split, use_regex=False)


def _begin_with(token: str, token_id: int) -> dict[str, Any]:
    """Post-processor that puts one BOS before the text (and before each half of a pair)."""
    bos = {"SpecialToken": {"id": token, "type_id": 0}}
    a, b = ({"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB"))
    return {
        "type": "TemplateProcessing", "single": [bos, a], "pair": [bos, a, bos, b],
        "special_tokens": {token: {"id": token, "ids": [token_id], "tokens": [token]}},
    }  # fmt: skip


_PRE_TOKENIZERS = {
    "smollm": _split_first({"type": "Digits", "individual_digits": True}, use_regex=True),
    "gpt-2": _byte_level(use_regex=True),
    "llama-bpe": _split_by(_LLAMA3_SPLIT),
    "qwen2": _split_by(_QWEN2_SPLIT),
}
