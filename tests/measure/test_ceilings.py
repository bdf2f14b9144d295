"""Ceilings that are kept. Oracle: measurements that count how often they are asked, and give another number each time."""

from __future__ import annotations

from itertools import count

import pytest

from llmcourse.measure import ceilings as kept
from llmcourse.measure.ceilings import FILE, ceilings, keep
from llmcourse.measure.roofline import Ceilings


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose bandwidth reads 1, 2, 3 … and whose FLOP rate 10, 20, 30 …; its facts, to be changed."""
    facts = {"cpu": "a machine", "cores": 2, "torch": "2.9", "threads": 2, "devices": [], "os": "a system"}
    reads, products = count(1), count(10, 10)
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "machine_facts", lambda: dict(facts))
    monkeypatch.setattr(kept, "memory_bandwidth", lambda device: float(next(reads)))
    monkeypatch.setattr(kept, "peak_flops", lambda dtype, device: float(next(products)))
    return facts


def test_a_second_question_gets_the_first_answer(machine):
    assert ceilings() == ceilings() == Ceilings(1.0, 10.0)


def test_another_dtype_measures_its_flops_only_and_both_are_kept(machine):
    assert ceilings(dtype="float32") == Ceilings(1.0, 10.0)
    assert ceilings(dtype="bfloat16") == Ceilings(1.0, 20.0)
    assert ceilings(dtype="float32") == Ceilings(1.0, 10.0)


def test_a_dtype_of_torch_and_its_name_are_the_same(machine):
    import torch

    assert ceilings(dtype=torch.float32) == ceilings(dtype="float32")
    assert ceilings(torch.device("cpu")) == ceilings("cpu")


@pytest.mark.parametrize("fact, value", [("torch", "2.10"), ("threads", 1), ("cpu", "another"), ("cores", 4)])
def test_a_changed_machine_is_measured_anew_and_the_old_one_is_remembered(machine, fact, value):
    first, before = ceilings(), machine[fact]
    machine[fact] = value
    assert ceilings() == Ceilings(2.0, 20.0)
    machine[fact] = before
    assert ceilings() == first


def test_what_does_not_matter_changes_nothing(machine):
    first = ceilings()
    machine["os"] = "the next version"
    assert ceilings() == first


def test_devices_are_kept_apart_and_the_first_card_has_two_names(machine):
    assert ceilings("cpu") == Ceilings(1.0, 10.0)
    assert ceilings("cuda") == ceilings("cuda:0") == Ceilings(2.0, 20.0)
    assert ceilings("cuda:1") == Ceilings(3.0, 30.0)


def test_asked_to_it_measures_anew_and_keeps_that(machine):
    ceilings()
    assert ceilings(anew=True) == ceilings() == Ceilings(2.0, 20.0)


def test_what_somebody_else_measured_is_kept(machine):
    keep("cpu", 7.0, {"float32": 70.0})
    keep("cpu", 8.0, {"bfloat16": 80.0})
    assert (ceilings(dtype="float32"), ceilings(dtype="bfloat16")) == (Ceilings(8.0, 70.0), Ceilings(8.0, 80.0))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"other": 1}'])
def test_a_damaged_file_is_measured_over(machine, tmp_path, content):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / FILE).write_text(content)
    assert ceilings() == ceilings() == Ceilings(1.0, 10.0)


def test_a_folder_that_cannot_be_written_is_no_error(machine, tmp_path):
    (tmp_path / "cache").write_text("a file, where a folder should be")
    assert (ceilings(), ceilings()) == (Ceilings(1.0, 10.0), Ceilings(2.0, 20.0))
