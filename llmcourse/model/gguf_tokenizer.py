"""The tokenizer of a GGUF file, as the files that Hugging Face keeps beside a model.

What a missing key means is taken from llama.cpp's loader: which tokenizers put a token before every text, and which
tokens end a turn although the file names only another end.
"""

from __future__ import annotations

from typing import Any

from llmcourse.errors import UnsupportedModel
from llmcourse.model.gguf_meta import getter
from llmcourse.model.tokenizer_files import PRE_TOKENIZERS, merges_of, sentencepiece_json, tokenizer_json

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4  # token types of the GGUF specification
_BEGINS_BY_DEFAULT = ("llama-bpe",)  # pre-tokenizers whose models were trained with a token before every text
_ENDS_OF_TURN = ("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|end_of_text|>", "<end_of_turn>")


def tokenizer_files(reader: Any, file_name: str) -> dict[str, dict[str, Any]]:
    """File name → content of `tokenizer.json`, `tokenizer_config.json` (with the chat template) and
    `generation_config.json`.

    Raises UnsupportedModel for all but byte-level BPE ("gpt2") with a pre-tokenizer known by name, and SentencePiece
    BPE ("llama").
    """
    get = getter(reader, "tokenizer.ggml")
    kind, pre = get("model"), get("pre", "default")
    if kind != "llama" and (kind != "gpt2" or pre not in PRE_TOKENIZERS):
        raise UnsupportedModel(
            f"{file_name} has a tokenizer of kind {kind!r} with pre-tokenizer {pre!r}; byte-level BPE ('gpt2') with "
            f"{', '.join(PRE_TOKENIZERS)}, and SentencePiece ('llama'), can be converted"
        )
    if get("add_eos_token", False):
        raise UnsupportedModel(f"{file_name} puts an end token after every text (add_eos_token), which is not supported")
    tokens = get("tokens")
    types = get("token_type", [_NORMAL] * len(tokens))
    ids = {name: get(f"{name}_token_id") for name in ("bos", "eos", "eot", "eom", "unknown", "padding")}
    names = {name: None if i is None else tokens[i] for name, i in ids.items()}
    begins = get("add_bos_token", kind == "llama" or pre in _BEGINS_BY_DEFAULT)
    begin = names["bos"] if begins else None
    control = (_CONTROL, _UNKNOWN) if kind == "llama" else (_CONTROL,)
    special = {tokens[i]: i for i, kind in enumerate(types) if kind in control}
    user_defined = {tokens[i]: i for i, kind in enumerate(types) if kind == _USER_DEFINED}
    vocab = {token: i for i, token in enumerate(tokens)}
    common = dict(special=special, user_defined=user_defined, begin=begin)
    if kind == "llama":
        scores = get("scores")
        if scores is None:
            raise UnsupportedModel(f"{file_name} has a SentencePiece tokenizer without scores, so without an order of merges")
        plain = {tokens[i]: scores[i] for i, kind in enumerate(types) if kind == _NORMAL}
        merges = merges_of(plain, vocab)
        tokenizer = sentencepiece_json(vocab, merges, prepend=get("add_space_prefix", True), **common)
    else:
        tokenizer = tokenizer_json(vocab, get("merges"), pre=pre, **common)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": names["bos"],
        "eos_token": names["eos"],
        "unk_token": names["unknown"],
        "pad_token": names["padding"],
        "add_bos_token": begin is not None,
        "clean_up_tokenization_spaces": False,
        "chat_template": getter(reader, "tokenizer")("chat_template"),
    }
    ends = [ids[name] for name in ("eos", "eot", "eom") if ids[name] is not None]
    ends += [special[token] for token in _ENDS_OF_TURN if token in special]
    generation = {"bos_token_id": ids["bos"], "eos_token_id": list(dict.fromkeys(ends)), "pad_token_id": ids["padding"]}
    return {
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": {key: value for key, value in settings.items() if value is not None},
        "generation_config.json": {key: value for key, value in generation.items() if value is not None},
    }
