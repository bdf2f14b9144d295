"""Reading a tokenizer from the files of a Hugging Face model folder.

tokenizer.json holds vocabulary, merges, pre-tokenization and added tokens; tokenizer_config.json names the special
tokens and holds the chat template, unless chat_template.jinja does; generation_config.json and config.json hold the
ids that end an answer. Only byte-level BPE is read; whatever else a file asks for is refused by name.

In tokenizer.json every byte of a token is written as one visible letter, after GPT-2: printable ones stand for
themselves, the 68 others for U+0100 and up, so that " the" is written "Ġthe".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llmcourse.errors import TokenizerError
from llmcourse.text.added import AddedToken
from llmcourse.text.bpe import BPE
from llmcourse.text.pattern import read_normalizer, read_pre_tokenizer

_PRINTABLE = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
BYTE_OF = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + i): byte for i, byte in enumerate(_OTHERS)}
LETTER_OF = {byte: letter for letter, byte in BYTE_OF.items()}

_UNSUPPORTED_BPE = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback")
_NAMED_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token")


def read_folder(folder: str | Path) -> dict[str, Any]:
    """What the files in `folder` say, as the keyword arguments of `Tokenizer`.

    Raises TokenizerError when tokenizer.json is missing or malformed, or asks for something that is not supported.
    """
    folder = Path(folder)
    if not (folder / "tokenizer.json").is_file():
        raise TokenizerError(f"there is no tokenizer.json in {folder}; a model folder needs one "
                             "(older SentencePiece files, tokenizer.model, are not supported)")
    main, config, *id_sources = (_read_json(folder / name) for name in (
        "tokenizer.json", "tokenizer_config.json", "generation_config.json", "config.json"))
    try:
        return {**_read_main(main), **_read_settings(main, config, id_sources),
                "chat_template": _read_chat_template(folder, config)}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise TokenizerError(f"tokenizer files in {folder} are malformed: {type(error).__name__} {error}") from error


def bytes_of_token(text: str) -> bytes:
    """The bytes of a token as tokenizer.json writes it: "Ġthe" → b" the". Text in other letters is UTF-8."""
    try:
        return bytes([BYTE_OF[letter] for letter in text])
    except KeyError:
        return text.encode()


def _read_json(path: Path) -> dict:
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TokenizerError(f"{path} is not valid JSON: {error}; fetch it again") from error


def _read_main(main: dict) -> dict[str, Any]:
    added = [AddedToken.from_json(entry) for entry in main.get("added_tokens") or []]
    decoder = (main.get("decoder") or {"type": "ByteLevel"})["type"]
    if decoder != "ByteLevel":
        raise TokenizerError(f"the decoder {decoder} is not supported; only ByteLevel")
    return {
        "bpe": _read_bpe(main["model"], {token.content for token in added if token.special}),
        "pattern": read_pre_tokenizer(main.get("pre_tokenizer")),
        "normalization": read_normalizer(main.get("normalizer")),
        "added": added,
    }


def _read_bpe(model: dict, specials: set[str]) -> BPE:
    """The vocabulary without special tokens: no piece of text may become one, whole or merged."""
    if model.get("type", "BPE") != "BPE":
        raise TokenizerError(f"the tokenizer model {model['type']} is not supported; only BPE")
    for name in _UNSUPPORTED_BPE:
        if model.get(name):
            raise TokenizerError(f"the BPE setting {name}={model[name]!r} is not supported")
    bytes_of = {text: bytes_of_token(text) for text in model["vocab"]}
    vocab = {bytes_of[text]: token_id for text, token_id in model["vocab"].items() if text not in specials}
    pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
    merges = [(bytes_of[left], bytes_of[right]) for left, right in pairs]
    return BPE(vocab, merges, ignore_merges=model.get("ignore_merges", False))


def _read_settings(main: dict, config: dict, id_sources: list[dict]) -> dict[str, Any]:
    """bos_id, eos_ids, add_bos and the special tokens' names."""
    id_of = {**main["model"]["vocab"], **{entry["content"]: entry["id"] for entry in main.get("added_tokens") or []}}
    names = {name: _content(config[name]) for name in _NAMED_TOKENS if config.get(name)}
    bos_ids = [*_template_ids(main.get("post_processor"), id_of)]
    add_bos = bool(bos_ids) or bool(config.get("add_bos_token"))
    if "bos_token" in names:
        bos_ids.append(id_of[names["bos_token"]])
    bos_ids += [source["bos_token_id"] for source in id_sources if source.get("bos_token_id") is not None]
    if add_bos and not bos_ids:
        raise TokenizerError("the files ask for a token at the start of text (add_bos_token) and name none")
    eos_ids = {id_of[names["eos_token"]]} if "eos_token" in names else set()
    for source in id_sources:
        ids = source.get("eos_token_id")
        eos_ids.update([] if ids is None else ids if isinstance(ids, list) else [ids])
    return {"bos_id": bos_ids[0] if bos_ids else None, "eos_ids": eos_ids, "add_bos": add_bos, "names": names}


def _template_ids(section: dict | None, id_of: dict[str, int]) -> Iterator[int]:
    """The id that the "post_processor" puts before a text, if any (Llama 3: <|begin_of_text|>)."""
    if section is None or section["type"] == "ByteLevel":  # ByteLevel only moves offsets
        return
    if section["type"] == "Sequence":
        for part in section["processors"]:
            yield from _template_ids(part, id_of)
        return
    if section["type"] != "TemplateProcessing":
        raise TokenizerError(f"the post_processor {section['type']} is not supported; only TemplateProcessing")
    *before, last = section["single"]
    if len(before) > 1 or "Sequence" not in last or any("SpecialToken" not in each for each in before):
        raise TokenizerError(f"the post_processor template {section['single']} is not supported; only a text, "
                             "or one special token and a text")
    for each in before:
        yield id_of[each["SpecialToken"]["id"]]


def _content(token: str | dict) -> str:
    return token["content"] if isinstance(token, dict) else token


def _read_chat_template(folder: Path, config: dict) -> str | None:
    """chat_template.jinja, else the config's template, or the one named "default" of several."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = config.get("chat_template")
    if isinstance(template, list):
        return {each["name"]: each["template"] for each in template}.get("default")
    return template
