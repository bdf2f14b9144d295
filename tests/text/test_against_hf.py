"""Token ids equal those of HF `tokenizers`, exactly: on the real vocabulary, and in the style of other models.

The oracle reads the same tokenizer.json. For the default model that is Sequence[Digits, ByteLevel]: the tokenizer
that transformers builds from a GGUF file leaves the digits out, and is no oracle.
"""

from __future__ import annotations

import inspect
import textwrap
import warnings

import pytest
import tokenizers
from hypothesis import given

from llmcourse.text.tokenizer import Tokenizer
from tests.text.hf_folders import ENGLISH, gpt2_like, llama3_like, qwen2_like, save
from tests.text.unicode14 import ASSIGNED, texts

SCRIPTS = {
    "Latin": "Zażółć gęślą jaźń; où est l'œuf? Ça coûte 3,50 €. Größe, naïve, señor, İstanbul.",
    "Vietnamese": "Tôi uống cà phê mỗi buổi sáng lúc 7 giờ.",
    "Greek": "Η θάλασσα είναι ήσυχη σήμερα, 21 Μαΐου.",
    "Cyrillic": "Сегодня идёт дождь, и я пью чай. Їжак і ґава.",
    "Armenian": "Այսօր եղանակը լավ է։",
    "Georgian": "დღეს კარგი ამინდია, 5 გრადუსი.",
    "Hebrew": "הַיּוֹם יוֹם יָפֶה מְאוֹד, 3 פעמים.",
    "Arabic": "الطَّقسُ جميلٌ اليومَ، ٣ كُتُب.",
    "Persian": "امروز هوا خوب است؛ می‌روم ۲۴ قدم.",
    "Devanagari": "आज मौसम अच्छा है, १२ किताबें।",
    "Bengali": "আজ আবহাওয়া ভালো, ৩টি বই।",
    "Gurmukhi": "ਅੱਜ ਮੌਸਮ ਚੰਗਾ ਹੈ।",
    "Gujarati": "આજે હવામાન સારું છે.",
    "Tamil": "இன்று வானிலை நன்றாக உள்ளது.",
    "Telugu": "ఈ రోజు వాతావరణం బాగుంది.",
    "Kannada": "ಇಂದು ಹವಾಮಾನ ಚೆನ್ನಾಗಿದೆ.",
    "Malayalam": "ഇന്ന് കാലാവസ്ഥ നല്ലതാണ്.",
    "Sinhala": "අද කාලගුණය හොඳයි.",
    "Thai": "วันนี้อากาศดีมาก ๕ องศา",
    "Lao": "ມື້ນີ້ອາກາດດີ",
    "Khmer": "ថ្ងៃនេះអាកាសធាតុល្អ។",
    "Burmese": "ဒီနေ့ ရာသီဥတု ကောင်းတယ်။",
    "Tibetan": "དེ་རིང་གནམ་གཤིས་ཡག་པོ་འདུག",
    "Ethiopic": "ዛሬ የአየር ሁኔታው ጥሩ ነው።",
    "Chinese": "今天天气很好，我买了３本书。",
    "Japanese": "今日は天気がいいので、コーヒーを２杯飲んだ。",
    "Korean": "오늘은 날씨가 좋아서 2시간 걸었다.",
    "Mongolian": "ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ᠌",
    "Cherokee": "ᎣᏏᏲ ᏙᎯᏧ",
    "Gothic": "𐌲𐌿𐍄𐌹𐍃𐌺",
}
MIXTURES = {
    "digits": "1 22 333 4444 3.14 1,000,000 1e-5 0x7f ½ ⅓cup  ½ x² H₂O Ⅻ ٣ ३ ３ 一二三 a1b2 v1.2.3",
    "spaces": " a  b   c \t d\t\te\n\nf\r\n g \n h\u00a0i\u2003j\u3000k\u200bl\u2028m \x85n  ",
    "only spaces": "     ",
    "spaces at both ends": "  \n\n a \n\n  ",
    "endings": "It's I'd I'm don't I'll we're I've 'S 'LL ''s 's's rock'n'roll ’s dogs'",
    "emoji": "😀👩‍🚀🏳️‍🌈👍🏽 🇩🇪🇫🇷 1️⃣ ☕️❤️‍🔥 a😀b 🤷🏾‍♂️",
    "combining": "e\u0301 Z\u0351\u036b\u0343\u0334a\u0329\u034e \u0301alone \u200d\ufe0f",
    "symbols": "a+b==c; x->y::z <!-- --> /* */ ¿¡ «» “” – — … @#$%^&*()_+{}|:\"<>? `~",
    "controls": "a\x00b\x01c\x07d\x1be\x7ff\x9fg\ufeffh",
    "line breaks": "one\r\ntwo\rthree\n\r\nfour\x0bfive\x0csix",
    "special text": "<|im_start|>user\nHi<|im_end|> <|endoftext|><|im_end|",
}


@pytest.fixture(scope="module")
def oracle(default_folder):
    """HF's reading of the default model's tokenizer.json, with special text typed by users left as text."""
    theirs = tokenizers.Tokenizer.from_file(str(default_folder / "tokenizer.json"))
    theirs.encode_special_tokens = True
    return theirs


def both(theirs: tokenizers.Tokenizer, folder) -> tuple[Tokenizer, tokenizers.Tokenizer]:
    theirs.encode_special_tokens = True
    return Tokenizer.from_folder(save(theirs, folder)), theirs


@pytest.fixture(scope="module", params=[gpt2_like, llama3_like, qwen2_like], ids=lambda make: make.__name__)
def pair(request, tmp_path_factory):
    """Ours and HF's reading of one other style of tokenizer.json."""
    return both(request.param(), tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def qwen2(tmp_path_factory):
    return both(qwen2_like(), tmp_path_factory.mktemp("qwen2"))


def hf_ids(theirs: tokenizers.Tokenizer, text: str) -> list[int]:
    return theirs.encode(text, add_special_tokens=False).ids


@pytest.fixture(autouse=True)
def _missing_bytes_are_expected():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="text holds bytes")
        yield


@pytest.mark.parametrize("name", [*SCRIPTS, *MIXTURES])
def test_ids_on_scripts_and_mixtures_equal_hf(tokenizer, oracle, name):
    text = {**SCRIPTS, **MIXTURES}[name]
    assert tokenizer.encode(text) == hf_ids(oracle, text)


@pytest.mark.parametrize("text", [ENGLISH, inspect.getsource(textwrap), inspect.getsource(inspect)],
                         ids=["English", "code", "more code"])
def test_ids_on_long_texts_equal_hf(tokenizer, oracle, text):
    assert len(text) > 15_000
    assert tokenizer.encode(text) == hf_ids(oracle, text)


@given(text=texts())
def test_ids_on_any_text_equal_hf(tokenizer, oracle, text):
    assert tokenizer.encode(text) == hf_ids(oracle, text)


def test_ids_on_every_assigned_character_equal_hf(tokenizer, oracle):
    for start in range(0, len(ASSIGNED), 5000):
        text = "".join(f"x {c}" for c in ASSIGNED[start:start + 5000])
        assert tokenizer.encode(text) == hf_ids(oracle, text), f"in the block from U+{ord(ASSIGNED[start]):04X}"


@given(text=texts())
def test_special_tokens_on_request_are_found_where_hf_finds_them(tokenizer, oracle, text):
    text = f"{text}<|im_start|>{text}"
    oracle.encode_special_tokens = False
    try:
        expected = hf_ids(oracle, text)
    finally:
        oracle.encode_special_tokens = True
    assert tokenizer.encode(text, special=True) == expected


@given(text=texts())
def test_decoding_equals_hf(tokenizer, oracle, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == oracle.decode(ids, skip_special_tokens=False)
    assert tokenizer.decode(ids[1:]) == oracle.decode(ids[1:], skip_special_tokens=False)  # may start in a character


@pytest.mark.parametrize("name", [*SCRIPTS, *MIXTURES])
def test_other_styles_equal_hf_on_scripts_and_mixtures(pair, name):
    ours, theirs = pair
    text = {**SCRIPTS, **MIXTURES}[name]
    assert ours.encode(text) == hf_ids(theirs, text)


def test_other_styles_equal_hf_on_english_and_whole_words(pair):
    ours, theirs = pair
    text = ENGLISH[:100_000] + " unbelievable foxglove qqqq qqqqq"
    assert ours.encode(text) == hf_ids(theirs, text)


@given(text=texts())
def test_other_styles_equal_hf_on_any_text(pair, text):
    ours, theirs = pair
    assert ours.encode(text) == hf_ids(theirs, text)


@given(text=texts(20))
def test_added_tokens_that_are_not_special_are_always_found(qwen2, text):
    ours, theirs = qwen2
    text = f"<think>{text}</think><|im_end|><tool_response> <cafe\u0301>"
    assert ours.encode(text) == hf_ids(theirs, text)
    assert ours.special.keys() == {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}


def test_llama3_style_puts_one_token_before_a_prompt_as_hf_does(tmp_path):
    theirs = llama3_like()
    ours = Tokenizer.from_folder(save(theirs, tmp_path, bos_token="<|begin_of_text|>", eos_token="<|eot_id|>"))
    assert ours.add_bos
    assert ours.prompt("Hello world") == theirs.encode("Hello world").ids
    assert ours.encode("Hello world") == theirs.encode("Hello world", add_special_tokens=False).ids
