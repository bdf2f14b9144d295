"""Eleven models that the course computes with, and never runs: their sizes, and where those are published.

Seven keep keys and values of every token in every layer, so their `ModelConfig` says all, parameters included. The four
of DeepSeek keep something smaller that was designed to be kept; their makers' formula stands in their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from llmcourse.model.config import ModelConfig


@dataclass(frozen=True)
class CompressedCache:
    """A model whose cache is not keys and values by heads.

    Args:
        n_params: as published, rounded.
        context: tokens that it was released for.
        formula: bytes that each token adds, with the model's own numbers and number formats; `bytes_per_token` is its value.
        meaning: what the terms of the formula are.
    """

    name: str
    n_params: int
    context: int
    formula: str
    bytes_per_token: float
    meaning: str


@dataclass(frozen=True)
class KnownModel:
    """One row of the table.

    Args:
        config: a `ModelConfig`, or a `CompressedCache`.
        source: where its numbers are published.
        window: a layer sees so many of the last tokens only, and older ones need not be kept; None: it sees all.
    """

    config: ModelConfig | CompressedCache
    source: str
    window: int | None = None

    @property
    def name(self) -> str:
        """The model's name."""
        return self.config.name


_llama2 = partial(ModelConfig, vocab_size=32_000, head_dim=128, context=4_096)
_llama3 = partial(ModelConfig, vocab_size=128_256, head_dim=128, n_kv_heads=8, context=8_192)
_MLA = "a latent of 512 and a rotated key of 64 for each layer"
_ENTRY = "448 bytes FP8, 64 BF16 values, 7 scales, 1 of padding"

_TABLE = (
    KnownModel(
        ModelConfig("SmolLM2-135M", vocab_size=49_152, width=576, n_layers=30, n_heads=9, n_kv_heads=3, head_dim=64,
                    ffn_width=1_536, context=8_192, tied=True),
        "config.json of HuggingFaceTB/SmolLM2-135M",
    ),
    KnownModel(
        _llama2("Llama-2-7B", width=4_096, n_layers=32, n_heads=32, n_kv_heads=32, ffn_width=11_008),
        "Touvron et al. 2023, arXiv 2307.09288; config.json of meta-llama/Llama-2-7b-hf",
    ),
    KnownModel(
        _llama2("Llama-2-13B", width=5_120, n_layers=40, n_heads=40, n_kv_heads=40, ffn_width=13_824),
        "Touvron et al. 2023, arXiv 2307.09288; config.json of meta-llama/Llama-2-13b-hf",
    ),
    KnownModel(
        _llama3("Llama-3-8B", width=4_096, n_layers=32, n_heads=32, ffn_width=14_336),
        "config.json of meta-llama/Meta-Llama-3-8B",
    ),
    KnownModel(
        _llama3("Llama-3-70B", width=8_192, n_layers=80, n_heads=64, ffn_width=28_672),
        "config.json of meta-llama/Meta-Llama-3-70B",
    ),
    KnownModel(
        ModelConfig("Mistral-7B", vocab_size=32_000, width=4_096, n_layers=32, n_heads=32, n_kv_heads=8, head_dim=128,
                    ffn_width=14_336, context=32_768),
        "Jiang et al. 2023, arXiv 2310.06825; config.json of mistralai/Mistral-7B-v0.1 (later versions have no window)",
        window=4_096,
    ),
    KnownModel(
        ModelConfig("Qwen3-8B", vocab_size=151_936, width=4_096, n_layers=36, n_heads=32, n_kv_heads=8, head_dim=128,
                    ffn_width=12_288, context=40_960, qk_norm=True),
        "config.json of Qwen/Qwen3-8B",
    ),
    KnownModel(
        CompressedCache("DeepSeek-V3", 671_000_000_000, 163_840, "61 · (512 + 64) · 2", 61 * (512 + 64) * 2,
                        f"{_MLA}, in BF16"),
        "DeepSeek-AI 2024, arXiv 2412.19437; config.json of deepseek-ai/DeepSeek-V3",
    ),
    KnownModel(
        CompressedCache("DeepSeek-V3.2", 671_000_000_000, 163_840, "61 · (656 + 132)", 61 * (656 + 132),
                        f"{_MLA}, as it is deployed: 512 bytes FP8, 4 scales of 4, 64 BF16 values; "
                        "and 132 for the key of its indexer"),
        "inference code of deepseek-ai/DeepSeek-V3.2-Exp; README of deepseek-ai/FlashMLA",
    ),
    KnownModel(
        CompressedCache("DeepSeek-V4-Pro", 1_600_000_000_000, 1_048_576, "30 / 4 · (584 + 68) + 31 / 128 · 584",
                        30 / 4 * (584 + 68) + 31 / 128 * 584,
                        f"30 layers keep one entry ({_ENTRY}) and one indexer key (68) for 4 tokens, 31 layers one for 128; "
                        "a window of 128 tokens, the same at any length, is left out"),
        "DeepSeek-AI 2026, arXiv 2606.19348, section 4.2.1; row layout of deepseek-ai/FlashMLA",
    ),
    KnownModel(
        CompressedCache("DeepSeek-V4-Flash", 284_000_000_000, 1_048_576, "21 / 4 · (584 + 68) + 20 / 128 · 584",
                        21 / 4 * (584 + 68) + 20 / 128 * 584,
                        f"21 layers keep one entry ({_ENTRY}) and one indexer key (68) for 4 tokens, 20 layers one for 128, "
                        "2 only the window, which is left out"),
        "DeepSeek-AI 2026, arXiv 2606.19348, section 4.2.1; row layout of deepseek-ai/FlashMLA",
    ),
)  # fmt: skip

MODELS: dict[str, KnownModel] = {model.name: model for model in _TABLE}


def known_model(name: str) -> KnownModel | None:
    """The row of this name, upper or lower case; None where there is none."""
    return next((model for model in _TABLE if model.name.lower() == name.lower()), None)
