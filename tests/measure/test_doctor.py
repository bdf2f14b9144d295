"""The doctor's report and picture. Oracle: files and versions that the test puts there or takes away."""

from __future__ import annotations

import io
import json
import shutil
import sys
from importlib import metadata

import pytest
from rich.console import Console
from safetensors.torch import save_file

from llmcourse.errors import DeviceUnavailable
from llmcourse.measure import doctor
from llmcourse.measure.ceilings import ceilings
from llmcourse.measure.roofline import Ceilings
from llmcourse.model.download import CONVERSION, DEFAULT_MODEL, GGUF


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path))
    return tmp_path


def items(found):
    return {(item["what"], item["path"].endswith(".gguf")): item for item in found["cache"]["items"]}


def shown(found):
    out = io.StringIO()
    Console(file=out, width=200).print(doctor.render(found))
    return out.getvalue()


def test_the_report_is_plain_data_with_the_documented_keys(cache):
    found = doctor.report(measure=False)
    assert json.loads(json.dumps(found)) == found
    assert list(found) == [
        "llmcourse", "python", "torch", "machine", "packages", "cache", "devices", "default", "triton", "missing",
    ]  # fmt: skip
    assert found["devices"][0]["device"] == "cpu"


def test_an_empty_cache_lists_three_downloads_with_their_commands(cache):
    found = doctor.report(measure=False)
    commands = [lack["get"] for lack in found["missing"] if "download" in lack["get"]]
    assert commands == [f"llmcourse download {what}" for what in ("model", "text", "gpt2-vocab")]
    assert all(command in shown(found) for command in commands)


def test_a_gguf_with_other_bytes_is_damaged_and_the_right_one_is_ok(cache, default_folder, monkeypatch):
    (cache / GGUF.file).write_bytes(b"GGUF but not really")
    item = items(doctor.report(measure=False))["model", True]
    assert (item["state"], item["bytes"]) == ("damaged", 19)
    published = default_folder.parents[1] / GGUF.file
    if not published.exists():
        pytest.skip("the published GGUF is no longer in the cache")
    shutil.copy(published, cache)
    assert items(doctor.report(measure=False))["model", True]["state"] == "ok"


def test_weights_that_were_cut_short_are_damaged(cache):
    import torch

    folder = cache / "models" / f"{DEFAULT_MODEL}-v{CONVERSION}"
    folder.mkdir(parents=True)
    weights = folder / "model.safetensors"
    save_file({"a": torch.zeros(3, 5), "b": torch.zeros(7)}, weights)
    assert items(doctor.report(measure=False))["model", False]["state"] == "ok"
    whole = weights.read_bytes()
    for length in (len(whole) - 1, 20, 3):
        weights.write_bytes(whole[:length])
        found = doctor.report(measure=False)
        assert items(found)["model", False]["state"] == "damaged", length
        assert any("delete" in lack["get"] for lack in found["missing"])


def test_a_torch_that_cannot_be_imported_is_reported_not_raised(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    found = doctor.report()
    assert found["torch"]["error"] and found["devices"] == []
    assert any(lack["what"] == "torch" and "start.py" in lack["get"] for lack in found["missing"])
    assert "torch" in shown(found)


def test_missing_packages_name_their_extra(cache, monkeypatch):
    real = metadata.version

    def version(name):
        if name == "jupyterlab":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(doctor.metadata, "version", version)
    lacks = {lack["what"]: lack for lack in doctor.report(measure=False)["missing"]}
    assert "jupyterlab" in lacks["extra lab"]["why"] and ".[lab]" in lacks["extra lab"]["get"]


def test_measured_rates_are_in_the_report_and_shown_with_their_units(cache, monkeypatch):
    monkeypatch.setattr(doctor, "memory_bandwidth", lambda device: 23.4e9)
    monkeypatch.setattr(doctor, "peak_flops", lambda dtype, device: {"float32": 98.7e9, "bfloat16": 1.5e12}[dtype])
    found = doctor.report()
    assert found["devices"][0]["flops_per_s"] == {"float32": 98.7e9, "bfloat16": 1.5e12}
    for words in ("23.4 GB/s", "98.7 GFLOP/s", "1.5 TFLOP/s"):
        assert words in shown(found)
    assert ceilings("cpu", "bfloat16") == Ceilings(23.4e9, 1.5e12)  # kept for whoever asks next


def test_a_measurement_that_fails_is_told_and_the_rest_stays(cache, monkeypatch):
    def fail(device):
        raise DeviceUnavailable("cannot measure cpu: no room")

    monkeypatch.setattr(doctor, "memory_bandwidth", fail)
    found = doctor.report()
    assert found["devices"][0]["error"] == "cannot measure cpu: no room"
    assert "no room" in shown(found) and found["cache"]["items"]
