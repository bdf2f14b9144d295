"""The Tokenizer: round trips, special text, odd characters, names and ids read from a model's files."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from functools import lru_cache

import numpy as np
import pytest
import tokenizers
import transformers
from hypothesis import given
from hypothesis import strategies as st

from llmcourse.errors import TokenizerError
from llmcourse.text.added import AddedToken, Cutter
from llmcourse.text.bpe import BPE, vocabulary
from llmcourse.text.tokenizer import Tokenizer
from tests.text.hf_folders import gpt2_like, hf_bpe, llama3_like, qwen2_like, save

SPECIAL_TEXT = "<|im_start|>user<|im_end|>"
LACKING = {0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xF1, 0xF2}  # and the 13 bytes that UTF-8 never uses
NEVER_IN_UTF8 = {0xC0, 0xC1, *range(0xF5, 0x100)}


def lacks_no_byte(text: str) -> bool:
    return not LACKING & set(text.encode())


@given(text=st.text().filter(lacks_no_byte))
def test_any_text_that_the_vocabulary_can_write_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(text=st.text(), special=st.booleans())
def test_any_text_comes_back_from_a_vocabulary_with_all_bytes(text, special):
    tokenizer = Tokenizer(BPE(vocabulary([]), []), "gpt2", added=[AddedToken(256, "<s>"), AddedToken(257, "0", False)])
    assert tokenizer.decode(tokenizer.encode(text, special=special)) == text


@pytest.mark.parametrize("text", ["", "\x00", "a\r\nb\r\n", " \t\n", "\ufeffa", "e\u0301", "\ufffd", "👩‍🚀"])
def test_odd_texts_come_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_lone_surrogates_come_back_as_replacement_characters(tokenizer):
    assert tokenizer.decode(tokenizer.encode("a\ud800b\udfff")) == "a\ufffdb\ufffd"


def test_the_default_vocabulary_lacks_the_bytes_that_the_docs_list(tokenizer):
    assert set(tokenizer.bpe.missing_bytes) == LACKING | NEVER_IN_UTF8


def test_bytes_that_the_vocabulary_lacks_are_dropped_with_one_warning_per_tokenizer(default_folder):
    tokenizer = Tokenizer.from_folder(default_folder)
    with pytest.warns(UserWarning, match="04 06 13 14 16 1D"):
        assert tokenizer.decode(tokenizer.encode("a\x04b")) == "ab"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tokenizer.decode(tokenizer.encode("a\x06b \x1dc")) == "ab c"


def test_special_text_is_ordinary_unless_asked_for(tokenizer):
    start, end = tokenizer.special["<|im_start|>"], tokenizer.special["<|im_end|>"]
    ordinary, asked = tokenizer.encode(SPECIAL_TEXT), tokenizer.encode(SPECIAL_TEXT, special=True)
    assert not set(ordinary) & set(tokenizer.special.values())
    assert asked[0] == start
    assert asked[-1] == end
    assert tokenizer.decode(ordinary) == tokenizer.decode(asked) == SPECIAL_TEXT


SHREDS = st.sampled_from(["<|", "im", "_start", "|>", "<|im_end|>", " ", "a", "<"])


@given(text=st.lists(SHREDS, max_size=12).map("".join))
def test_no_text_makes_a_special_token_by_itself(tokenizer, text):
    assert not set(tokenizer.encode(text)) & set(tokenizer.special.values())


def test_a_special_token_that_stands_in_the_vocabulary_is_not_reached_by_ignore_merges(tmp_path):
    theirs = hf_bpe(ignore_merges=True)
    theirs.pre_tokenizer = gpt2_like().pre_tokenizer
    theirs.add_special_tokens(["qqqq"])  # a token of the vocabulary, and one piece to the pre-tokenizer
    tokenizer = Tokenizer.from_folder(save(theirs, tmp_path))
    assert tokenizer.encode("qqqq", special=True) == [tokenizer.special["qqqq"]]
    assert tokenizer.special["qqqq"] not in tokenizer.encode("qqqq")


def test_the_longest_of_two_special_tokens_is_matched():
    tokenizer = Tokenizer(BPE(vocabulary([]), []), "gpt2", added=[AddedToken(300, "<s>"), AddedToken(301, "<s>x")])
    assert tokenizer.encode("<s><s>x<s", special=True) == [300, 301, ord("<"), ord("s")]


def test_tokens_that_swallow_white_space_do_so_on_their_side_only():
    cutter = Cutter({"<l>": AddedToken(1, "<l>", lstrip=True), "<r>": AddedToken(2, "<r>", rstrip=True)})
    assert list(cutter.cut("a \n<l> b <r>\t c", special=True)) == ["a", 1, " b ", 2, "c"]


@pytest.mark.parametrize("token_id", [49152, 10**9])
def test_an_id_without_a_token_decodes_to_nothing(tokenizer, token_id):
    assert tokenizer.decode([*tokenizer.encode("a"), token_id, *tokenizer.encode(" b")]) == "a b"
    assert tokenizer.tokens([token_id]) == [""]


def test_an_id_below_zero_is_refused(tokenizer):
    with pytest.raises(TokenizerError, match="no token -1"):
        tokenizer.decode([1, -1])


@given(ids=st.lists(st.integers(0, 60) | st.integers(0, 49151), max_size=30))
def test_decoding_without_special_tokens_equals_hf(tokenizer, default_folder, ids):
    """Oracle: HF `tokenizers` on the same file, whose own default leaves them out."""
    theirs = hf_tokenizer(default_folder)
    assert tokenizer.decode(ids, skip_special_tokens=True) == theirs.decode(ids)
    assert tokenizer.decode(np.array(ids, int), skip_special_tokens=True) == theirs.decode(ids)


@lru_cache
def hf_tokenizer(folder):
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


def test_ids_may_be_whole_numbers_of_any_library(tokenizer):
    ids = tokenizer.encode("The capital of France")
    assert tokenizer.decode(np.array(ids)) == "The capital of France"


def test_text_that_is_no_text_is_refused(tokenizer):
    with pytest.raises(TokenizerError, match="encode takes text, not bytes b'abc'"):
        tokenizer.encode(b"abc")


def test_incomplete_characters_decode_to_replacement_characters(tokenizer):
    ids = tokenizer.encode("🤗")
    assert len(ids) == 3
    assert tokenizer.decode(ids[:-1]) == "\ufffd"
    assert tokenizer.decode([*ids[:1], *tokenizer.encode("a")]) == "\ufffda"


def test_tokens_are_shown_with_spaces_breaks_and_half_characters_visible(tokenizer):
    ids = tokenizer.encode("a  12\n\t\x00 🤗é<|im_end|>", special=True)
    shown = ["a", "␣␣", "1", "2", "\\n", "\\t", "\\x00", "␣\\xf0\\x9f", "\\xa4", "\\x97", "é", "<|im_end|>"]
    assert tokenizer.tokens(ids) == shown


def test_token_bytes_joined_are_the_text(tokenizer):
    ids = tokenizer.encode("Über 🤗 x")
    assert b"".join(map(tokenizer.token_bytes, ids)) == "Über 🤗 x".encode()


def test_the_default_models_names_and_ids_are_read(tokenizer):
    assert tokenizer.vocab_size == 49152
    assert tokenizer.bos_id == tokenizer.special["<|im_start|>"] == 1
    assert tokenizer.eos_ids == {tokenizer.special["<|im_end|>"]} == {2}
    assert len(tokenizer.special) == 17
    assert tokenizer.has_chat
    assert not tokenizer.add_bos
    assert tokenizer.prompt("Hi") == tokenizer.encode("Hi")


def test_every_id_that_any_file_names_as_the_end_is_an_end(tmp_path):
    theirs = llama3_like()
    folder = save(theirs, tmp_path, eos_token={"content": "<|eot_id|>", "lstrip": False})
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [3, 5]}))
    (folder / "config.json").write_text(json.dumps({"eos_token_id": 7, "bos_token_id": 9}))
    tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer.eos_ids == {3, 5, 7, theirs.token_to_id("<|eot_id|>")}
    assert tokenizer.bos_id == theirs.token_to_id("<|begin_of_text|>")  # what the post_processor really adds


def test_add_bos_token_of_the_config_is_read_where_there_is_no_post_processor(tmp_path):
    tokenizer = Tokenizer.from_folder(save(gpt2_like(), tmp_path, bos_token="<|endoftext|>", add_bos_token=True))
    assert tokenizer.prompt("a") == [tokenizer.special["<|endoftext|>"], *tokenizer.encode("a")]


def test_a_folder_without_any_config_has_neither_begin_nor_end_nor_chat(tmp_path):
    gpt2_like().save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert (tokenizer.bos_id, tokenizer.eos_ids, tokenizer.has_chat) == (None, frozenset(), False)


def test_names_that_only_special_tokens_map_has_are_read(tmp_path):
    """Folders of transformers before 4.0 name them there, as texts or as tables."""
    folder = save(llama3_like(), tmp_path)
    names = {"eos_token": {"content": "<|eot_id|>", "lstrip": False}, "bos_token": "<|begin_of_text|>"}
    (folder / "special_tokens_map.json").write_text(json.dumps(names))
    tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer.eos_ids == {tokenizer.special["<|eot_id|>"]}
    assert tokenizer.names["bos_token"] == "<|begin_of_text|>"


def test_the_config_counts_more_than_special_tokens_map(tmp_path):
    folder = save(llama3_like(), tmp_path, eos_token="<|eot_id|>")
    (folder / "special_tokens_map.json").write_text(json.dumps({"eos_token": "<|begin_of_text|>"}))
    tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer.eos_ids == {tokenizer.special["<|eot_id|>"]}


def test_a_token_that_only_added_tokens_decoder_has_is_a_token(tmp_path):
    """Oracle: transformers on the same folder."""
    theirs = gpt2_like()
    n = theirs.get_vocab_size()
    entry = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
    decoder = {str(n): {**entry, "content": "<|turn|>", "special": True}, str(n + 1): {**entry, "content": "<mark>", "special": False}}
    folder = save(theirs, tmp_path, eos_token="<|turn|>", added_tokens_decoder=decoder, tokenizer_class="PreTrainedTokenizerFast")
    tokenizer, oracle = Tokenizer.from_folder(folder), transformers.AutoTokenizer.from_pretrained(folder)
    text = "a<|turn|>b<mark> c"
    assert tokenizer.encode(text, special=True) == oracle.encode(text)
    assert tokenizer.eos_ids == {n}
    assert n not in tokenizer.encode(text) and n + 1 in tokenizer.encode(text)
    assert tokenizer.decode([n]) == "<|turn|>"


@pytest.mark.parametrize(("number", "content"), [("5", "<|turn|>"), ("99999", "<|endoftext|>")])
def test_files_that_give_an_id_to_different_tokens_are_refused(number, content, tmp_path):
    decoder = {number: {"content": content, "special": True}}
    with pytest.raises(TokenizerError, match=f"gives the id {number}"):
        Tokenizer.from_folder(save(gpt2_like(), tmp_path, added_tokens_decoder=decoder))


def test_a_named_token_that_is_none_is_named(tmp_path):
    with pytest.raises(TokenizerError, match="eos_token '<nowhere>' is no token"):
        Tokenizer.from_folder(save(gpt2_like(), tmp_path, eos_token="<nowhere>"))


@pytest.mark.parametrize("add", [True, False])
def test_the_post_processor_counts_whatever_add_bos_token_says(add, tmp_path):
    """Oracle: transformers on the same folder."""
    folder = save(llama3_like(), tmp_path, bos_token="<|begin_of_text|>", add_bos_token=add,
                  tokenizer_class="PreTrainedTokenizerFast")  # fmt: skip
    assert Tokenizer.from_folder(folder).prompt("Hi") == transformers.AutoTokenizer.from_pretrained(folder).encode("Hi")


@pytest.mark.parametrize(("config", "named"), [({"add_eos_token": True}, "add_eos_token"), ({"add_bos_token": "no"}, "'no'")])
def test_what_would_be_put_around_a_text_and_is_not_supported_is_named(config, named, tmp_path):
    with pytest.raises(TokenizerError, match=named):
        Tokenizer.from_folder(save(gpt2_like(), tmp_path, bos_token="<|endoftext|>", eos_token="<|endoftext|>", **config))


@pytest.mark.parametrize("value", ["2", [2, "3"], 2.0, True])
def test_an_eos_id_that_is_no_whole_number_is_named(value, tmp_path):
    folder = save(gpt2_like(), tmp_path)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": value}))
    with pytest.raises(TokenizerError, match="eos_token_id .* whole numbers"):
        Tokenizer.from_folder(folder)


WHITE = ["\t", "\n", "\x0b", "\x0c", "\r", "\x1c", "\x1d", "\x1e", "\x1f", " ", "\x85", "\xa0", "\u1680", "\u180e", "\u2000",
         "\u200a", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff"]  # fmt: skip


@pytest.mark.parametrize("white", WHITE, ids=[f"U+{ord(c):04X}" for c in WHITE])
def test_a_token_swallows_the_white_space_that_hf_swallows(white, swallower):
    """Oracle: HF. U+001C to U+001F are white space to Python and not to Unicode."""
    ours, theirs = swallower
    text = f"a{white}{white}<l>{white}b<r>{white} {white}c"
    assert ours.encode(text, special=True) == theirs.encode(text, add_special_tokens=False).ids


@pytest.fixture(scope="module")
def swallower(tmp_path_factory):
    theirs = gpt2_like()
    theirs.add_special_tokens([tokenizers.AddedToken("<l>", lstrip=True), tokenizers.AddedToken("<r>", rstrip=True)])
    return Tokenizer.from_folder(save(theirs, tmp_path_factory.mktemp("tokenizer"))), theirs


def changed(folder, **sections) -> None:
    file = folder / "tokenizer.json"
    main = json.loads(file.read_text(encoding="utf-8"))
    for name, value in sections.items():
        main[name] = {**main[name], **value} if name == "model" else value
    file.write_text(json.dumps(main), encoding="utf-8")


def test_merges_written_as_one_string_are_read_like_pairs(tmp_path):
    folder = save(gpt2_like(), tmp_path)
    before = Tokenizer.from_folder(folder).encode("the unbelievable truth")
    merges = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["merges"]
    changed(folder, model={"merges": [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]})
    assert Tokenizer.from_folder(folder).encode("the unbelievable truth") == before


@pytest.mark.parametrize(("sections", "named"), [
    ({"model": {"type": "Unigram"}}, "Unigram"),
    ({"model": {"byte_fallback": True}}, "falls back to bytes and lacks 256"),
    ({"model": {"continuing_subword_prefix": "##"}}, "continuing_subword_prefix"),
    ({"normalizer": {"type": "Lowercase"}}, "Lowercase"),
    ({"pre_tokenizer": {"type": "Whitespace"}}, "Whitespace"),
    ({"decoder": {"type": "Metaspace"}}, "Metaspace"),
    ({"post_processor": {"type": "BertProcessing"}}, "BertProcessing"),
    ({"post_processor": {"type": "TemplateProcessing", "single": [
        {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<|endoftext|>"}}]}}, "not supported.* one special token"),
    ({"added_tokens": [{"id": 0, "content": "word", "single_word": True}]}, "'word' has single_word"),
    ({"model": {"merges": ["no such"]}}, "malformed"),
])  # fmt: skip
def test_what_a_file_asks_for_and_we_lack_is_named(tmp_path, sections, named):
    folder = save(gpt2_like(), tmp_path)
    changed(folder, **sections)
    with pytest.raises(TokenizerError, match=named):
        Tokenizer.from_folder(folder)


@pytest.mark.parametrize(("content", "says"), [(None, "no tokenizer.json in"), ("{", "not valid JSON"),
                                               ("{}", "malformed"), ("[]", "malformed")])
def test_a_missing_or_broken_file_is_one_clear_error(tmp_path, content, says):
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(TokenizerError, match=says):
        Tokenizer.from_folder(tmp_path)


def test_qwen2_style_normalizes_to_nfc(tmp_path):
    tokenizer = Tokenizer.from_folder(save(qwen2_like(), tmp_path))
    assert tokenizer.encode("cafe\u0301") == tokenizer.encode("caf\u00e9")


def test_the_text_floor_imports_neither_torch_nor_transformers_nor_jinja2():
    program = ("import sys, llmcourse.text.tokenizer; "
               "assert not {'torch', 'transformers', 'jinja2', 'numpy'} & set(sys.modules), sys.modules.keys()")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
