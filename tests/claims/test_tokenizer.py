"""The statements of lesson 01. Oracles: HF `tokenizers` on SmolLM2's own file, and the ids that everyone's GPT-2 gives."""

from __future__ import annotations

import pytest
import tokenizers

from llmcourse.claims import CORRECTED, FAILS, HOLDS, claims, tokenizer
from llmcourse.workbook.languages import sentences

GPT2_IDS = [2437, 857, 32278, 670, 30]  # as OpenAI's own encoder prints them
CUT = ("un", "h", "appiness")


@pytest.mark.parametrize("size, verdict", [(50_257, HOLDS), (49_152, HOLDS), (32_000, FAILS), (128_256, FAILS)])
def test_about_fifty_thousand_is_within_five_percent(size, verdict):
    assert tokenizer.judge_sizes({"GPT-2": 50_257, "other": size}).verdict == verdict


def test_c01_is_measured():
    found = claims(["C01"])[0].check().found
    assert found.measured == "GPT-2 50,257 tokens, SmolLM2 49,152 tokens" and found.verdict == HOLDS


@pytest.mark.parametrize("cuts, verdict", [
    ([("un", "happi", "ness"), CUT], HOLDS), ([CUT, CUT], CORRECTED), ([("unhappiness",), ("unhappiness",)], FAILS),
], ids=["as printed", "elsewhere", "whole"])  # fmt: skip
def test_a_cut_elsewhere_corrects_and_no_cut_refutes(cuts, verdict):
    assert tokenizer.judge_cuts(dict(zip(("GPT-2", "SmolLM2"), cuts))).verdict == verdict


def test_c02_is_measured_and_corrected():
    found = claims(["C02"])[0].check().found
    assert found.measured == "GPT-2 un + h + appiness, SmolLM2 un + h + appiness" and found.verdict == CORRECTED


def test_other_ids_refute_and_the_same_confirm():
    assert tokenizer.judge_ids(GPT2_IDS, "How How").verdict == FAILS
    assert tokenizer.judge_ids(list(tokenizer.SAID_IDS), "").verdict == HOLDS


def test_c03_is_measured_and_refuted():
    found = claims(["C03"])[0].check().found
    assert found.measured == str(GPT2_IDS) and found.verdict == FAILS and "How How inference work?" in found.why


@pytest.mark.parametrize("greek, spanish, english_s, greek_s, verdict", [
    (49, 20, 0.5, 2.0, HOLDS), (49, 11, 0.5, 2.0, CORRECTED), (12, 20, 0.5, 2.0, FAILS), (49, 20, 0.5, 0.6, FAILS),
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
