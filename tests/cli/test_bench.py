"""`llmcourse bench`: fields, and shares of known ceilings."""

from __future__ import annotations

import json
from statistics import median

import pytest

from llmcourse.measure.roofline import Ceilings, forward_bytes, forward_flops

FIELDS = [
    "what", "tokens_per_s", "runs", "prompt_tokens", "output_tokens", "model", "device", "dtype", "quant", "parts", "cache",
    "bytes_per_s", "flops_per_s", "mbu", "mfu", "itl_s", "machine",
]  # fmt: skip
BANDWIDTH, FLOPS = 20e9, 100e9


@pytest.fixture(autouse=True)
def known_machine(monkeypatch, model):
    """The session's model on a machine with known ceilings, so that nothing is measured but the engine."""
    monkeypatch.setattr("llmcourse.engine.engine.load_model", lambda _name, device, dtype, quant: model)
    monkeypatch.setattr("llmcourse.measure.machine.machine_facts", lambda: {"cpu": "a machine"})
    monkeypatch.setattr("llmcourse.measure.ceilings.ceilings", lambda *_: Ceilings(BANDWIDTH, FLOPS))


def test_decode_has_the_documented_fields_and_its_share_of_the_bandwidth(run, model):
    ran = run("bench", "--runs", "2", "--output-tokens", "4", "--json")
    fields = json.loads(ran.out)
    assert list(fields) == FIELDS
    assert (fields["what"], fields["prompt_tokens"], fields["output_tokens"]) == ("decode", 16, 4)
    assert len(fields["runs"]) == 2
    assert fields["tokens_per_s"] == pytest.approx(median(fields["runs"]), abs=0.001)  # both rounded to a thousandth
    expected = forward_bytes(model.config, 1, 16 + 1) * fields["tokens_per_s"]  # three steps, after 16, 17 and 18 tokens
    assert fields["bytes_per_s"] == pytest.approx(expected, rel=1e-3)
    assert fields["mbu"] == pytest.approx(expected / BANDWIDTH, rel=1e-3)
    assert (fields["mfu"], fields["flops_per_s"]) == (None, None)
    assert list(fields["itl_s"]) == ["p50", "p95", "p99"] and sorted(fields["itl_s"].values()) == [*fields["itl_s"].values()]
    assert fields["machine"] == {"cpu": "a machine", "bytes_per_s": BANDWIDTH, "flops_per_s": FLOPS}


def test_prefill_has_its_share_of_the_flop_rate(run, model):
    options = "--runs 2 --prompt-tokens 24 --cache none --parts reference --json"
    ran = run("bench", "prefill", *options.split())
    fields = json.loads(ran.out)
    assert list(fields) == FIELDS
    expected = forward_flops(model.config, 24) / 24 * fields["tokens_per_s"]
    assert fields["mfu"] == pytest.approx(expected / FLOPS, rel=1e-3)
    assert (fields["mbu"], fields["itl_s"], fields["parts"], fields["cache"]) == (None, None, "reference", "none")


def test_people_get_four_lines(run):
    lines = run("bench", "--runs", "1", "--output-tokens", "3").out.splitlines()
    assert lines[0] == "decode of 3 tokens after 16: SmolLM2-135M-Instruct, float32, cpu, parts cpu"
    assert "tokens/s" in lines[1] and "median of 1 runs" in lines[1]
    assert lines[2].startswith("ITL ") and lines[2].endswith("(p99)")
    assert lines[3].endswith("of the 20.0 GB/s measured here (MBU)")
    assert len(lines) == 4


def test_a_prompt_longer_than_the_context_is_an_error_of_one_line(run):
    ran = run("bench", "prefill", "--prompt-tokens", "8192")
    assert ran.code == 1
    assert "8,192" in ran.err and ran.err.count("\n") == 1
