"""SentencePiece-style vocabularies with byte fallback: ids and text equal those of HF `tokenizers`, exactly.

The oracle reads the same tokenizer.json. Its settings are those of Llama 2, TinyLlama and Mistral, and Metaspace's others.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmcourse.errors import TokenizerError
from llmcourse.text.sentencepiece import BYTE_NAMES, SentencePieceBPE
from llmcourse.text.tokenizer import Tokenizer
from tests.text.hf_folders import ENGLISH, save, sentencepiece_like
from tests.text.test_against_hf import MIXTURES, SCRIPTS
from tests.text.unicode14 import ASSIGNED, texts

STYLES = ["llama2", "replace", "first", "always", "never", "first-words", "always-words"]
SPACED = st.lists(st.sampled_from([" ", "  ", "▁", "the", "\n", "<s>", "<think>", " <|pad|> ", "\x1c<|pad|>\x1c", "▁<PRE>", "é",
                                   "<0x41>", "<0xE4>", "<unk>", "ß", "🤗"]), max_size=14).map("".join)  # fmt: skip


@pytest.fixture(scope="module", params=STYLES)
def pair(request, tmp_path_factory):
    """Ours and HF's reading of one tokenizer.json."""
    theirs = sentencepiece_like(request.param)
    folder = save(theirs, tmp_path_factory.mktemp("tokenizer"), bos_token="<s>", eos_token="</s>")
    return Tokenizer.from_folder(folder), theirs


def hf_ids(theirs, text: str, special: bool = False) -> list[int]:
    theirs.encode_special_tokens = not special
    return theirs.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("name", [*SCRIPTS, *MIXTURES])
def test_ids_on_scripts_and_mixtures_equal_hf(pair, name):
    ours, theirs = pair
    text = {**SCRIPTS, **MIXTURES}[name]
    assert ours.encode(text) == hf_ids(theirs, text)


def test_ids_on_english_equal_hf_and_are_mostly_words(pair):
    ours, theirs = pair
    text = ENGLISH[:60_000]
    ids = ours.encode(text)
    assert ids == hf_ids(theirs, text)
    assert len(ids) < len(text) / 2


def test_ids_on_every_assigned_character_equal_hf(pair):
    ours, theirs = pair
    for start in range(0, len(ASSIGNED), 20_000):
        text = "".join(f"x {c}" for c in ASSIGNED[start:start + 20_000])
        assert ours.encode(text) == hf_ids(theirs, text), f"in the block from U+{ord(ASSIGNED[start]):04X}"


@example(text=" <think>", special=False)  # matched after normalization, so its own text begins with the space put before it
@given(text=texts() | SPACED, special=st.booleans())
def test_ids_and_text_on_any_text_equal_hf(pair, text, special):
    ours, theirs = pair
    ids = ours.encode(text, special=special)
    assert ids == hf_ids(theirs, text, special)
    for skip in (False, True):
        assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)


@given(text=texts() | SPACED, skip=st.booleans())
def test_pieces_of_a_stream_joined_are_the_whole_decoded(pair, text, skip):
    ours, _ = pair
    ids = ours.encode(text, special=True)
    stream = ours.stream(skip_special_tokens=skip)
    assert "".join([*map(stream.push, ids), stream.finish()]) == ours.decode(ids, skip_special_tokens=skip)


@given(text=st.text().filter(lambda text: "▁" not in text))
def test_any_text_comes_back(pair, text):
    ours, _ = pair
    if ours.drops_first_space and ours.normalization == () and text.startswith(" "):
        return  # Metaspace puts no second space before one, and decoding takes that one away: HF does the same
    assert ours.decode(ours.encode(text)) == text


def test_a_prompt_begins_as_hf_begins_it(pair):
    ours, theirs = pair
    assert ours.prompt("Hello world") == theirs.encode("Hello world").ids
    assert ours.prompt("Hello")[0] == ours.bos_id == 1


def test_a_chat_is_the_rendered_text_with_special_tokens_matched(pair):
    """Only the text that nothing precedes counts as the start: the text after <s> gets no space from `first`."""
    ours, theirs = pair
    ours.chat_template, ours._chat = "{% for m in messages %}{{ bos_token }}[INST] {{ m.content }} [/INST]{% endfor %}", None
    messages = [{"role": "user", "content": "Hi there"}, {"role": "user", "content": " more"}]
    rendered = "<s>[INST] Hi there [/INST]<s>[INST]  more [/INST]"
    assert ours.chat(messages) == hf_ids(theirs, rendered, special=True)


@pytest.mark.parametrize("text", ["<s>", "</s>", "a<unk>b", "<|pad|>"])
def test_special_text_of_a_user_is_ordinary(pair, text):
    ours, _ = pair
    assert not set(ours.encode(text)) & set(ours.special.values())


def test_characters_without_a_token_are_written_in_bytes(pair):
    ours, _ = pair
    assert ours.encode("🤗")[-4:] == [3 + byte for byte in "🤗".encode()]


def test_half_a_character_is_held_back_until_it_is_whole(pair):
    ours, _ = pair
    stream = ours.stream()
    assert [stream.push(3 + byte) for byte in "🤗".encode()] == ["", "", "", "🤗"]


def changed(folder, **sections):
    file = folder / "tokenizer.json"
    main = json.loads(file.read_text(encoding="utf-8"))
    for name, value in sections.items():
        main[name] = {**main[name], **value} if name == "model" else value
    file.write_text(json.dumps(main), encoding="utf-8")


def test_ignore_merges_takes_a_whole_piece_as_hf_does(tmp_path):
    folder = save(sentencepiece_like("always-words"), tmp_path)
    changed(folder, model={"ignore_merges": True, "merges": []})
    from tokenizers import Tokenizer as HF

    theirs = HF.from_file(str(folder / "tokenizer.json"))
    assert Tokenizer.from_folder(folder).encode("the function the") == hf_ids(theirs, "the function the")


def test_the_oldest_metaspace_settings_are_read_as_hf_reads_them(tmp_path):
    from tokenizers import Tokenizer as HF

    folder = save(sentencepiece_like("always-words"), tmp_path)
    changed(folder, pre_tokenizer={"type": "Metaspace", "replacement": "▁", "add_prefix_space": True})
    theirs = HF.from_file(str(folder / "tokenizer.json"))
    assert Tokenizer.from_folder(folder).encode("the  function ") == hf_ids(theirs, "the  function ")


@pytest.mark.parametrize(("sections", "named"), [
    ({"decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}}, "decoder Metaspace"),
    ({"decoder": None}, "decoder nothing"),
    ({"decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}}, "ByteFallback, Fuse of"),
    ({"pre_tokenizer": {"type": "Whitespace"}}, "Whitespace"),
    ({"pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": False}}, "Metaspace"),
    ({"normalizer": {"type": "Replace", "pattern": {"Regex": " +"}, "content": "▁"}}, "Replace by a regex"),
    ({"normalizer": {"type": "Strip"}}, "Strip"),
    ({"model": {"vocab": {"a": 0}, "merges": []}}, "lacks 256 of them, such as <0x00>"),
    ({"model": {"dropout": 0.1}}, "dropout"),
])  # fmt: skip
def test_what_a_file_asks_for_and_we_lack_is_named(tmp_path, sections, named):
    folder = save(sentencepiece_like("first"), tmp_path)
    changed(folder, **sections)
    with pytest.raises(TokenizerError, match=named):
        Tokenizer.from_folder(folder)


def test_merges_of_characters_are_not_handed_to_those_who_merge_bytes():
    with pytest.raises(TokenizerError, match="merges characters"):
        SentencePieceBPE({name: i for i, name in enumerate(BYTE_NAMES)}, []).merges
