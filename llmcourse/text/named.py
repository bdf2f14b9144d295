"""Which tokens have a part to play: added tokens, the token that begins a text, those that end an answer.

The files of a model folder say it in several places, of different age. tokenizer.json says what really happens to a text;
tokenizer_config.json and, in older folders, special_tokens_map.json name tokens; generation_config.json and config.json
name ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llmcourse.errors import TokenizerError
from llmcourse.text.added import AddedToken

_NAMES = ("bos_token", "eos_token", "pad_token", "unk_token")


def read_added(main: dict, config: dict) -> list[AddedToken]:
    """The added tokens of tokenizer.json, and those that only `added_tokens_decoder` of tokenizer_config.json has.

    Raises TokenizerError where the second gives an id to another token than the first.
    """
    added = [AddedToken.from_json(entry) for entry in main.get("added_tokens") or []]
    known, vocab = {token.content: token.id for token in added}, main["model"]["vocab"]
    taken = {token_id: content for content, token_id in {**vocab, **known}.items()}
    for number, entry in (config.get("added_tokens_decoder") or {}).items():
        content, token_id = entry["content"], int(number)
        if taken.get(token_id, content) != content or known.get(content, token_id) != token_id:
            raise TokenizerError(f"tokenizer_config.json gives the id {token_id} to {content!r}, tokenizer.json to "
                                 f"{taken.get(token_id)!r}; the files do not belong together")
        if content not in known:
            defaults = {"special": False, "normalized": not entry.get("special", False), "lstrip": False, "rstrip": False}
            added.append(AddedToken.from_json({**defaults, **entry, "id": token_id}))
    return added


def read_names(config: dict, named: dict) -> dict[str, str]:
    """Special tokens as chat templates know them, "bos_token" → "<s>": of the config, else of special_tokens_map.json."""
    sources = {name: config.get(name) or named.get(name) for name in _NAMES}
    return {name: _content(token) for name, token in sources.items() if token}


def read_ids(
    main: dict, config: dict, names: Mapping[str, str], added: Sequence[AddedToken], id_sources: Sequence[dict]
) -> dict[str, Any]:
    """bos_id, eos_ids and add_bos, from the names, the post_processor and the config files with ids.

    A text begins with a token where the post_processor of tokenizer.json or `add_bos_token` of the config says so.
    """
    id_of = {**main["model"]["vocab"], **{token.content: token.id for token in added}}
    for name in ("bos_token", "eos_token"):
        if name in names and names[name] not in id_of:
            raise TokenizerError(f"the {name} {names[name]!r} is no token of this vocabulary")
    if config.get("add_eos_token"):
        raise TokenizerError("add_eos_token, an end token after every text, is not supported")
    bos_ids = [*_template_ids(main.get("post_processor"), id_of)]
    asked = config.get("add_bos_token") or False
    if not isinstance(asked, bool):
        raise TokenizerError(f"tokenizer_config.json has add_bos_token {asked!r}; it must be true or false")
    add_bos = asked or bool(bos_ids)
    if "bos_token" in names:
        bos_ids.append(id_of[names["bos_token"]])
    bos_ids += [i for source in id_sources for i in _ids(source, "bos_token_id")]
    if add_bos and not bos_ids:
        raise TokenizerError("the files ask for a token at the start of text (add_bos_token) and name none")
    eos_ids = {id_of[names["eos_token"]]} if "eos_token" in names else set()
    eos_ids.update(i for source in id_sources for i in _ids(source, "eos_token_id"))
    return {"bos_id": bos_ids[0] if bos_ids else None, "eos_ids": eos_ids, "add_bos": add_bos}


def _ids(source: dict, key: str) -> list[int]:
    """An id, a list of ids, or nothing. Raises TokenizerError for what is no id, such as the string "2"."""
    value = source.get(key)
    ids = [] if value is None else value if isinstance(value, list) else [value]
    if any(isinstance(each, bool) or not isinstance(each, int) for each in ids):
        raise TokenizerError(f"a config has {key} {value!r}; token ids are whole numbers without quotes")
    return ids


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
