"""The statements of lesson 01. Oracles: HF `tokenizers` on SmolLM2's own file, and the ids that everyone's GPT-2 gives."""

from __future__ import annotations

import pytest
import tokenizers

from llmcourse.claims import CORRECTED, FAILS, HOLDS, claims, tokenizer
from llmcourse.workbook.languages import sentences

GPT2_IDS = [2437, 857, 32278, 670, 30]  # as OpenAI's own encoder prints them
CUT = ("un", "h", "appiness")


@pytest.mark.parametrize("size, verdict", [(50_257, HOLDS), (49_152, HOLDS), (32_000, CORRECTED), (128_256, CORRECTED)])
def test_about_fifty_thousand_is_within_five_percent_for_all_or_for_some(size, verdict):
    assert tokenizer.judge_sizes({"GPT-2": 50_257, "other": size}).verdict == verdict


def test_vocabularies_of_another_size_refute_it():
    assert tokenizer.judge_sizes({"one": 256, "other": 256}).verdict == FAILS


def test_c01_is_measured():
    found = claims(["C01"])[0].check().found
    assert found.measured.startswith("GPT-2 50,257 tokens, SmolLM2 49,152 tokens, Llama-2-7B 32,000 tokens")
    assert found.verdict == CORRECTED and "Llama-3-8B" in found.why and "GPT-2" not in found.why


@pytest.mark.parametrize("cuts, verdict", [
    ([("un", "happi", "ness"), CUT], HOLDS), ([CUT, CUT], CORRECTED), ([("unhappiness",), ("unhappiness",)], FAILS),
    ([tuple("unhappiness")] * 2, FAILS),
], ids=["as printed", "elsewhere", "whole", "letters"])  # fmt: skip
def test_a_cut_elsewhere_corrects_and_no_cut_refutes(cuts, verdict):
    assert tokenizer.judge_cuts(dict(zip(("GPT-2", "SmolLM2"), cuts))).verdict == verdict


def test_c02_is_measured_and_corrected():
    found = claims(["C02"])[0].check().found
    assert found.measured == "GPT-2 un + h + appiness, SmolLM2 un + h + appiness" and found.verdict == CORRECTED


def test_other_ids_refute_and_the_same_confirm():
    assert tokenizer.judge_ids(GPT2_IDS, "How How").verdict == FAILS
    assert tokenizer.judge_ids(list(tokenizer.SAID_IDS), tokenizer.SENTENCE).verdict == HOLDS


def test_a_tokenizer_that_always_gives_the_printed_ids_fails():
    """Planted: a constant. Its ids must also mean the sentence."""
    assert tokenizer.judge_ids(list(tokenizer.SAID_IDS), "How How inference work?").verdict == FAILS


def test_c03_is_measured_and_refuted():
    found = claims(["C03"])[0].check().found
    assert found.measured == str(GPT2_IDS) and found.verdict == FAILS and "How How inference work?" in found.why


@pytest.mark.parametrize("greek, spanish, english_s, greek_s, verdict", [
    (49, 20, 0.5, 2.0, HOLDS), (49, 11, 0.5, 2.0, CORRECTED), (12, 20, 0.5, 2.0, FAILS), (49, 20, 0.5, 0.6, FAILS),
    (11, 11, 1.0, 1.0, FAILS),  # planted: a tokenizer, or a clock, that gives a constant
])  # fmt: skip
def test_rare_languages_must_cost_tokens_and_time(greek, spanish, english_s, greek_s, verdict):
    counts = {"English": 11, "Greek": greek, "Spanish": spanish}
    assert tokenizer.judge_costs(counts, english_s, greek_s).verdict == verdict


def test_c04_counts_the_tokens_of_hf_tokenizers_and_times_them(default_folder):
    hf = tokenizers.Tokenizer.from_file(str(default_folder / "tokenizer.json"))
    n = {name: len(hf.encode(one.text, add_special_tokens=False).ids) for name, one in sentences().items()}
    found = claims(["C04"])[0].check().found
    assert found.measured.startswith(f"English {n['English']} tokens, ")
    assert f" {max(n.values())}, the most of {len(n)} languages; Greek {n['Greek']} tokens" in found.measured
    assert " s against " in found.measured and found.verdict in (HOLDS, CORRECTED, FAILS)
