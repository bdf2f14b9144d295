"""One call for a model: device, dtype, name, and the errors of each."""

from __future__ import annotations

import pytest
import torch

from llmcourse.errors import DeviceUnavailable, OutOfMemory, UnknownModel
from llmcourse.model import load as load_module
from llmcourse.model.load import choose_device, choose_dtype, load_model, load_tokenizer
from tests.tiny_gguf import tiny_tensors, write_gguf
from tests.tiny_models import write_tiny

CPU = torch.device("cpu")


@pytest.fixture
def pretend(monkeypatch):
    """`pretend(cuda=2, mps=True, bf16=False)`: what torch says that this machine has."""

    def set_up(cuda=0, mps=False, bf16=True):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: bf16)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return set_up


def test_auto_is_cuda_where_there_is_a_card_else_the_cpu(pretend):
    pretend(cuda=1, mps=True)
    assert choose_device() == torch.device("cuda")
    pretend(mps=True)
    assert choose_device() == CPU


def test_devices_are_taken_by_name_or_as_torch_device(pretend):
    pretend(cuda=2, mps=True)
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    assert choose_device(torch.device("mps")) == torch.device("mps")
    assert choose_device("cpu") == CPU


@pytest.mark.parametrize("name", ["cuda:2", "tpu", "", "CPU"])
def test_a_device_that_is_not_here_is_named_with_those_that_are(name, pretend):
    pretend(cuda=2)
    with pytest.raises(DeviceUnavailable, match=f"'{name}' is not available; .* has cpu, cuda, cuda:0, cuda:1"):
        choose_device(name)


@pytest.mark.parametrize(
    ("device", "bf16", "want"),
    [
        ("cpu", True, torch.float32),
        ("cuda", True, torch.bfloat16),
        ("cuda", False, torch.float16),
        ("mps", True, torch.float16),
    ],
)
def test_auto_dtype_is_what_the_device_computes_natively(device, bf16, want, pretend):
    pretend(cuda=1, mps=True, bf16=bf16)
    assert choose_dtype("auto", torch.device(device)) == want


@pytest.mark.parametrize(
    ("names", "want"),
    [
        (("float32", "fp32", torch.float32), torch.float32),
        (("bfloat16", "bf16", torch.bfloat16), torch.bfloat16),
        (("float16", "fp16", torch.float16), torch.float16),
        (("float64", "fp64", torch.float64), torch.float64),
    ],
)
def test_dtypes_have_a_long_and_a_short_name(names, want):
    assert {choose_dtype(name, CPU) for name in names} == {want}


@pytest.mark.parametrize("dtype", ["int4", "float8", torch.int8])
def test_a_dtype_that_models_do_not_run_in_is_named(dtype):
    with pytest.raises(DeviceUnavailable, match=f"{dtype}.*auto, float32, fp32, bfloat16"):
        choose_dtype(dtype, CPU)


def test_double_precision_on_an_apple_gpu_is_refused(pretend):
    pretend(mps=True)
    with pytest.raises(DeviceUnavailable, match="float64 is not available on mps"):
        choose_dtype("float64", torch.device("mps"))


def test_a_model_has_the_dtype_and_device_asked_for(tmp_path):
    write_tiny(tmp_path / "tiny", "qwen3")
    model = load_model(tmp_path / "tiny", device="cpu", dtype="bf16")
    assert (model.dtype, model.device, model.name) == (torch.bfloat16, CPU, "tiny")
    assert model.weights.layers[0].q_norm.dtype == torch.bfloat16


def test_a_gguf_file_loads_under_its_own_name_with_its_own_tokenizer(tmp_path, monkeypatch):
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path / "cache"))
    file = write_gguf(tmp_path / "tiny-q4.gguf", tiny_tensors())
    model = load_model(file, device="cpu")
    assert model.name == "tiny-q4"
    tokenizer = load_tokenizer(file)
    assert tokenizer.decode(tokenizer.encode(" the cat  12")) == " the cat  12"
    assert load_tokenizer(model.source).encode(" the") == tokenizer.encode(" the")


def test_the_device_is_checked_before_anything_is_fetched(monkeypatch):
    def fetch(name):
        raise AssertionError("fetched")

    monkeypatch.setattr(load_module, "model_folder", fetch)
    with pytest.raises(DeviceUnavailable):
        load_model(device="abacus")


def test_an_unknown_model_is_an_error_of_this_package():
    with pytest.raises(UnknownModel, match="'no-such-model'"):
        load_model("no-such-model")


def test_memory_that_runs_out_while_loading_is_named_with_the_models_size(tmp_path, monkeypatch):
    write_tiny(tmp_path, "llama")
    real = torch.Tensor.to

    def no_memory(self, *args, **options):
        if options.get("dtype") == torch.float64:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return real(self, *args, **options)

    monkeypatch.setattr(torch.Tensor, "to", no_memory)
    with pytest.raises(OutOfMemory, match=rf"the weights of {tmp_path.name} in float64 need {94206 * 8:,} bytes"):
        load_model(tmp_path, device="cpu", dtype="float64")


def test_the_default_model_is_float32_on_the_cpu_and_shares_its_head(model):
    assert (model.name, model.dtype, model.device) == ("SmolLM2-135M-Instruct", torch.float32, CPU)
    assert model.weights.head is model.weights.embed


@pytest.mark.gpu
def test_a_model_on_the_gpu_gives_the_cpus_logits(tmp_path):
    """float32 on both; tolerance 1e-3 on logits of about 3 (TF32 is off by default for matrix products)."""
    write_tiny(tmp_path, "llama-gqa")
    ids = [(7 * i) % 197 for i in range(64)]
    on_cpu = load_model(tmp_path, device="cpu", dtype="float32")(ids)
    on_gpu = load_model(tmp_path, device="cuda", dtype="float32")(ids)
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, atol=1e-3, rtol=0)
