"""A BPE vocabulary, byte-level or SentencePiece's, written as the tokenizer files that Hugging Face keeps beside a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llmcourse.text.sentencepiece import SPACE

_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_QWEN2_SPLIT = _LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")


def tokenizer_json(
    vocab: dict[str, int],
    merges: Sequence[str],
    special: dict[str, int],
    pre: str,
    user_defined: dict[str, int] | None = None,
    begin: str | None = None,
) -> dict[str, Any]:
    """The content of `tokenizer.json`.

    Args:
        vocab: token in the byte-to-letter alphabet of GPT-2 → id.
        merges: "left right", the first merged first.
        special: control tokens, which plain text never becomes. `user_defined` are matched whole in plain text.
        pre: name of the pre-tokenizer, one of `PRE_TOKENIZERS` (the names that GGUF files use).
        begin: the special token to put before every text, or None.
    """
    return {
        **_frame(special, user_defined, None if begin is None else _begin_with(begin, vocab[begin])),
        "normalizer": {"type": "NFC"} if pre == "qwen2" else None,
        "pre_tokenizer": PRE_TOKENIZERS[pre],
        "decoder": _byte_level(use_regex=True),
        "model": _bpe(vocab, [merge.split(" ") for merge in merges], ignore_merges=pre == "llama-bpe"),
    }


def sentencepiece_json(
    vocab: dict[str, int],
    merges: Sequence[tuple[str, str]],
    special: dict[str, int],
    prepend: bool,
    user_defined: dict[str, int] | None = None,
    begin: str | None = None,
) -> dict[str, Any]:
    """The content of `tokenizer.json` for SentencePiece BPE with byte fallback, as Llama 2's own.

    Args:
        vocab: token with "▁" for a space → id; bytes are "<0x00>" to "<0xFF>".
        prepend: whether a space is put before every text between special tokens.
        The others: as for `tokenizer_json`.
    """
    steps = [{"type": "Prepend", "prepend": SPACE}] * prepend
    steps.append({"type": "Replace", "pattern": {"String": " "}, "content": SPACE})
    back = [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    back += [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] * prepend
    return {
        **_frame(special, user_defined, None if begin is None else _begin_with(begin, vocab[begin])),
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": back},
        "model": {**_bpe(vocab, [list(pair) for pair in merges]), "byte_fallback": True, "fuse_unk": True,
                  "unk_token": "<unk>" if "<unk>" in vocab else None},
    }  # fmt: skip


def merges_of(score: dict[str, float], vocab: dict[str, int]) -> list[tuple[str, str]]:
    """The merges that a SentencePiece vocabulary implies: every way to put a token together from two others.

    score: of each plain token. SentencePiece joins the neighbours whose token scores highest; so a merge into a token of
    higher score comes first, and of several into the same token the one whose parts score higher.
    """
    ways = []
    for token, worth in score.items():
        cuts = ((token[:i], token[i:]) for i in range(1, len(token)))
        known = [cut for cut in cuts if cut[0] in score and cut[1] in score]
        ways += [(worth, score[left], score[right], left, right) for left, right in known]
    ways.sort(key=lambda way: (-way[0], vocab[way[3] + way[4]], -way[1], -way[2]))
    return [(left, right) for *_, left, right in ways]


def _frame(special: dict[str, int], user_defined: dict[str, int] | None, post_processor: dict | None) -> dict[str, Any]:
    """What every tokenizer.json holds beside its stages: the added tokens, and what is put before a text."""
    added = [(i, token, True) for token, i in special.items()]
    added += [(i, token, False) for token, i in (user_defined or {}).items()]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": is_special}
            for i, token, is_special in sorted(added)
        ],
        "post_processor": post_processor,
    }  # fmt: skip


def _bpe(vocab: dict[str, int], merges: list[list[str]], ignore_merges: bool = False) -> dict[str, Any]:
    return {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": ignore_merges,
        "vocab": vocab, "merges": merges,
    }  # fmt: skip


def write_json_files(folder: Path, files: dict[str, Any]) -> None:
    """Write file name → content as UTF-8 JSON; small files are indented for people, the vocabulary is not."""
    for name, content in files.items():
        indent = None if name == "tokenizer.json" else 2
        (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=indent), encoding="utf-8")


def _byte_level(use_regex: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def _after(first: dict[str, Any], use_regex: bool) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": [first, _byte_level(use_regex)]}


def _split_by(pattern: str) -> dict[str, Any]:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return _after(split, use_regex=False)


def _begin_with(token: str, token_id: int) -> dict[str, Any]:
    """Post-processor that puts one BOS before the text (and before each half of a pair)."""
    bos = {"SpecialToken": {"id": token, "type_id": 0}}
    a, b = ({"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB"))
    return {
        "type": "TemplateProcessing", "single": [bos, a], "pair": [bos, a, bos, b],
        "special_tokens": {token: {"id": token, "ids": [token_id], "tokens": [token]}},
    }  # fmt: skip


PRE_TOKENIZERS = {
    "smollm": _after({"type": "Digits", "individual_digits": True}, use_regex=True),
    "gpt-2": _byte_level(use_regex=True),
    "llama-bpe": _split_by(_LLAMA3_SPLIT),
    "qwen2": _split_by(_QWEN2_SPLIT),
}
