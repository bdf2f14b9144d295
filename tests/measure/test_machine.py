"""Ceilings and facts. Oracle: a clock that the test moves, so that the exact rate is known; no real second is asserted."""

from __future__ import annotations

import os
import platform
import sys

import pytest
import torch

from llmcourse.errors import DeviceUnavailable
from llmcourse.measure import clock as timing
from llmcourse.measure import machine


@pytest.fixture
def clock(monkeypatch):
    """A clock whose readings come in pairs: a run takes the seconds of the list, the last of them again and again."""
    seconds = []
    state = {"now": 0.0, "reading": 0}

    def read():
        if state["reading"] % 2:
            state["now"] += seconds.pop(0) if len(seconds) > 1 else seconds[0]
        state["reading"] += 1
        return state["now"]

    monkeypatch.setattr(timing, "perf_counter", read)
    return seconds


def test_bandwidth_is_the_buffer_over_the_fastest_pass(clock, monkeypatch):
    monkeypatch.setattr(machine, "_MIN_BUFFER", 1 << 20)
    monkeypatch.setattr(machine, "_last_level_cache", lambda: 1 << 10)
    clock += [0.1, 0.6, 100.0, 0.5, 0.6, 0.6]  # the warm-up does not count, nor do passes that were disturbed
    assert machine.memory_bandwidth() == pytest.approx((1 << 20) / 0.5)


def test_the_buffer_is_eight_times_the_last_level_cache(clock, monkeypatch):
    monkeypatch.setattr(machine, "_MIN_BUFFER", 1 << 10)
    monkeypatch.setattr(machine, "_last_level_cache", lambda: 1 << 17)
    clock += [1.0]
    assert machine.memory_bandwidth() == pytest.approx(8 * (1 << 17))


def test_flops_are_two_n_cubed_at_the_first_size_that_takes_long_enough(clock):
    too_quick = [0.001, 0.001, 9.0, 0.001]  # a warm-up and three passes: of 256 rows, then of 512
    clock += [*too_quick, *too_quick, 0.5, 0.5, 0.5, 0.5, 0.5, 0.7, 0.4, 0.7]  # 1024 rows: calibration, then passes
    assert machine.peak_flops("float32") == pytest.approx(2 * 1024**3 / 0.4)


@pytest.mark.parametrize("dtype", ["bfloat16", torch.bfloat16])
def test_flops_multiply_matrices_of_the_asked_dtype(clock, monkeypatch, dtype):
    seen = []
    real = torch.mm
    monkeypatch.setattr(torch, "mm", lambda a, b: (seen.append((a.dtype, b.dtype)), real(a, b))[1])
    clock += [1.0]
    machine.peak_flops(dtype)
    assert set(seen) == {(torch.bfloat16, torch.bfloat16)}


def test_a_device_that_is_not_there_is_named():
    for measure in (machine.memory_bandwidth, lambda device: machine.peak_flops("float32", device)):
        with pytest.raises(DeviceUnavailable, match="nonsense"):
            measure("nonsense")


def test_facts_name_this_machine():
    facts = machine.machine_facts()
    assert facts["python"] == platform.python_version()
    assert facts["torch"] == torch.__version__ and facts["threads"] == torch.get_num_threads()
    assert 1 <= facts["cores"] <= os.cpu_count()
    psutil = pytest.importorskip("psutil")
    assert facts["ram_bytes"] == pytest.approx(psutil.virtual_memory().total, rel=0.01)


def test_facts_without_torch_say_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # `import torch` raises ImportError
    facts = machine.machine_facts()
    assert facts["torch"] is None and facts["devices"] == [] and facts["cpu"]


@pytest.mark.parametrize(
    ("cpuinfo", "native"),
    [
        ({"flags": "fpu avx512f avx512_bf16"}, True),
        ({"flags": "fpu avx2 bf16_like"}, False),
        ({"Features": "fp asimd bf16"}, True),
        ({}, None),
    ],
)
def test_bfloat16_instructions_are_read_from_the_flags(monkeypatch, cpuinfo, native):
    monkeypatch.setattr(machine, "_cpuinfo", lambda: cpuinfo)
    monkeypatch.setattr(machine.sys, "platform", "linux")
    assert machine.native_bfloat16("cpu") is native


@pytest.mark.gpu
def test_a_cuda_card_is_measured_and_listed():
    (card, *_) = machine.machine_facts()["devices"]
    assert card["device"] == "cuda:0" and card["memory_bytes"] > 0
    assert machine.memory_bandwidth("cuda") > 0 and machine.peak_flops("float32", "cuda") > 0
