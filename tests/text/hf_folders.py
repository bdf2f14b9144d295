"""Folders of tokenizer files in the style of well-known models, written by HF `tokenizers` over a small vocabulary."""

from __future__ import annotations

import json
import pydoc_data.topics
from functools import lru_cache
from pathlib import Path

from tokenizers import (
    AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers)

from llmcourse.text.bpe import train_bpe, vocabulary
from llmcourse.text.files import LETTER_OF
from llmcourse.text.sentencepiece import BYTE_NAMES

ENGLISH = "\n\n".join(text for _, text in sorted(pydoc_data.topics.topics.items()))

# As these models' own files write them.
LLAMA3_REGEX = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                r"|\s*[\r\n]+|\s+(?!\S)|\s+")  # fmt: skip
QWEN2_REGEX = LLAMA3_REGEX.replace(r"\p{N}{1,3}", r"\p{N}")
WHOLE_WORDS = ("Ġunbelievable", "Ġfoxglove", "qqqq")  # tokens that no merges lead to


@lru_cache
def small_merges() -> tuple[tuple[bytes, bytes], ...]:
    """744 merges learned from English, with GPT-2's cut."""
    return tuple(train_bpe(ENGLISH[:200_000], 1000, "gpt2"))


def in_letters(token: bytes) -> str:
    """Token bytes as tokenizer.json writes them."""
    return "".join(LETTER_OF[byte] for byte in token)


def hf_bpe(**settings) -> Tokenizer:
    """HF's tokenizer over the small vocabulary; ids are not 256 + rank: the bytes come last, and some whole words."""
    merges = small_merges()
    learned = [token for token in vocabulary(merges) if len(token) > 1]
    tokens = [in_letters(token) for token in [*learned, *(bytes([byte]) for byte in range(256))]] + [*WHOLE_WORDS]
    vocab = {token: token_id for token_id, token in enumerate(tokens)}
    pairs = [(in_letters(left), in_letters(right)) for left, right in merges]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=pairs, **settings))
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def gpt2_like() -> Tokenizer:
    """GPT-2: ByteLevel alone, one special token, nothing before a text."""
    tokenizer = hf_bpe()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def llama3_like() -> Tokenizer:
    """Llama 3: its own regex, ignore_merges, <|begin_of_text|> before a text."""
    tokenizer = hf_bpe(ignore_merges=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3_REGEX), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"])
    bos = ("<|begin_of_text|>", tokenizer.token_to_id("<|begin_of_text|>"))
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(
            single=[bos[0], "$A"], pair=[bos[0], "$A", bos[0], "$B:1"], special_tokens=[bos])])
    return tokenizer


def qwen2_like() -> Tokenizer:
    """Qwen: NFC, one digit at a time, special tokens and added tokens that are not special."""
    tokenizer = hf_bpe()
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2_REGEX), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ("<think>", "</think>", "<tool_response>")])
    tokenizer.add_tokens([AddedToken("<caf\u00e9>", normalized=True)])
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path, chat_template: str | None = None, **config) -> Path:
    """Write tokenizer.json, and tokenizer_config.json with `config`; returns the folder."""
    tokenizer.save(str(folder / "tokenizer.json"))
    if chat_template is not None:
        config["chat_template"] = chat_template
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


@lru_cache
def _sentencepiece_model() -> tuple[dict[str, int], tuple[tuple[str, str], ...]]:
    """Vocabulary and merges trained by HF's own trainer on English and some Greek: <unk>, <s>, </s>, bytes, then pieces."""
    trainer = trainers.BpeTrainer(
        vocab_size=1100, special_tokens=["<unk>", "<s>", "</s>", *BYTE_NAMES], show_progress=False,
        initial_alphabet=["▁"], limit_alphabet=120,
    )  # fmt: skip
    trained = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    greek = "Η θάλασσα είναι ήσυχη σήμερα και η πόλη κοιμάται. " * 50
    trained.train_from_iterator([ENGLISH[:200_000], greek, "  two    spaces " * 40], trainer)
    model = json.loads(trained.to_str())["model"]
    return model["vocab"], tuple(tuple(pair) for pair in model["merges"])


def sentencepiece_like(style: str) -> Tokenizer:
    """Llama 2 and TinyLlama ("llama2"), Mistral and newer Llama files ("first"), and Metaspace's other settings.

    As in those models' own files: <s> before a text, "▁" for a space, bytes for characters that have no token.
    """
    vocab, merges = _sentencepiece_model()
    tokenizer = Tokenizer(models.BPE(vocab=dict(vocab), merges=list(merges), unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if style == "llama2":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    elif style == "replace":
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
    else:
        scheme = style.removesuffix("-words")
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=style.endswith("-words"))
    if style not in ("replace", "never"):
        steps.append(decoders.Strip(content=" ", left=1, right=0))
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in ("<unk>", "<s>", "</s>")])
    tokenizer.add_special_tokens([AddedToken("<|pad|>", lstrip=True, rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("▁<PRE>", normalized=False), AddedToken("<think>", normalized=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=["<s>", "$A"], pair=["<s>", "$A", "<s>", "$B:1"], special_tokens=[("<s>", 1)])
    return tokenizer
