"""Reading a tokenizer from the files of a Hugging Face model folder.

tokenizer.json holds vocabulary, merges, pre-tokenization and added tokens; tokenizer_config.json names the special
tokens and holds the chat template, unless chat_template.jinja does; generation_config.json and config.json hold the
ids that end an answer. Read are byte-level BPE and SentencePiece-style BPE with byte fallback; whatever else a file asks
for is refused by name.

In the tokenizer.json of byte-level BPE every byte of a token is written as one visible letter, after GPT-2: printable ones stand for
themselves, the 68 others for U+0100 and up, so that " the" is written "Ġthe".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from llmcourse.errors import TokenizerError
from llmcourse.text.added import AddedToken
from llmcourse.text.bpe import BPE
from llmcourse.text.named import read_added, read_ids, read_names
from llmcourse.text.normal import flatten, read_normalizer
from llmcourse.text.pattern import read_metaspace, read_pre_tokenizer
from llmcourse.text.sentencepiece import SPACE, SentencePieceBPE

_PRINTABLE = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
BYTE_OF = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + i): byte for i, byte in enumerate(_OTHERS)}
LETTER_OF = {byte: letter for letter, byte in BYTE_OF.items()}

_UNSUPPORTED_BPE = ("dropout", "continuing_subword_prefix", "end_of_word_suffix")


def read_folder(folder: str | Path) -> dict[str, Any]:
    """What the files in `folder` say, as the keyword arguments of `Tokenizer`.

    Raises TokenizerError when tokenizer.json is missing or malformed, or asks for something that is not supported.
    """
    folder = Path(folder)
    if not (folder / "tokenizer.json").is_file():
        raise TokenizerError(f"there is no tokenizer.json in {folder}; a model folder needs one "
                             "(older SentencePiece files, tokenizer.model, are not supported)")
    main, config, named, *id_sources = (_read_json(folder / name) for name in (
        "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json", "config.json"))
    try:
        added = read_added(main, config)
        names = read_names(config, named)
        return {**_read_main(main, added), **read_ids(main, config, names, added, id_sources), "names": names,
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
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TokenizerError(f"{path} is not valid JSON: {error}; fetch it again") from error
    if not isinstance(content, dict):
        raise TokenizerError(f"{path} is malformed: it holds a {type(content).__name__}, not a table; fetch it again")
    return content


def _read_main(main: dict, added: list[AddedToken]) -> dict[str, Any]:
    specials, model = {token.content for token in added if token.special}, main["model"]
    common = {"normalization": read_normalizer(main.get("normalizer")), "added": added}
    if model.get("byte_fallback"):
        return {**common, "bpe": _read_sentencepiece(model, specials), "pattern": read_metaspace(main.get("pre_tokenizer")),
                "drops_first_space": _drops_first_space(main.get("decoder"))}
    decoder = (main.get("decoder") or {"type": "ByteLevel"})["type"]
    if decoder != "ByteLevel":
        raise TokenizerError(f"the decoder {decoder} is not supported; only ByteLevel")
    return {**common, "bpe": _read_bpe(model, specials), "pattern": read_pre_tokenizer(main.get("pre_tokenizer"))}


def _drops_first_space(section: dict | None) -> bool:
    """Whether the "decoder" of a SentencePiece-style file, "▁" to spaces and bytes to text, drops the first space."""
    steps = list(flatten(section, "decoders"))
    common = [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    if steps not in (common, [*common, strip]):
        raise TokenizerError(f"the decoder {', '.join(step['type'] for step in steps) or 'nothing'} of a vocabulary with "
                             "byte_fallback is not supported; only Replace, ByteFallback, Fuse, and Strip of one space")
    return len(steps) > len(common)


def _check_model(model: dict) -> None:
    if model.get("type", "BPE") != "BPE":
        raise TokenizerError(f"the tokenizer model {model['type']} is not supported; only BPE")
    for name in _UNSUPPORTED_BPE:
        if model.get(name):
            raise TokenizerError(f"the BPE setting {name}={model[name]!r} is not supported")


def _read_sentencepiece(model: dict, specials: set[str]) -> SentencePieceBPE:
    """The vocabulary without special tokens: no piece of text may become one, whole or merged."""
    _check_model(model)
    vocab = {text: token_id for text, token_id in model["vocab"].items() if text not in specials}
    merges = [pair for pair in _pairs(model) if "".join(pair) not in specials and not specials & set(pair)]
    return SentencePieceBPE(vocab, merges, ignore_merges=model.get("ignore_merges", False))


def _read_bpe(model: dict, specials: set[str]) -> BPE:
    """The vocabulary without special tokens: no piece of text may become one, whole or merged."""
    _check_model(model)
    bytes_of = {text: bytes_of_token(text) for text in model["vocab"]}
    vocab = {bytes_of[text]: token_id for text, token_id in model["vocab"].items() if text not in specials}
    merges = [(bytes_of[left], bytes_of[right]) for left, right in _pairs(model)]
    return BPE(vocab, merges, ignore_merges=model.get("ignore_merges", False))


def _pairs(model: dict) -> list[list[str]]:
    """The merges, written as pairs or as "left right"."""
    return [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]


def _read_chat_template(folder: Path, config: dict) -> str | None:
    """chat_template.jinja, else the config's template, or the one named "default" of several."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = config.get("chat_template")
    if isinstance(template, list):
        return {each["name"]: each["template"] for each in template}.get("default")
    return template
