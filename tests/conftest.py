"""Fixtures that every test may use: the real default model, its tokenizer, and the rule for tests marked `gpu`."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before any import of huggingface_hub: tests never ask a hub

import hypothesis
import pytest

hypothesis.settings.register_profile("course", deadline=None)  # a slow machine is not a wrong answer
hypothesis.settings.load_profile("course")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `gpu` where there is no CUDA device, and say why."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = _why_no_cuda() if marked else None
    if reason:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


def _why_no_cuda() -> str | None:
    import torch

    if torch.cuda.is_available():
        return None
    if torch.version.cuda is None:
        return f"no CUDA device: torch {torch.__version__} is built without CUDA"
    return f"no CUDA device: torch {torch.__version__} is built for CUDA {torch.version.cuda} but finds no card or driver"


@pytest.fixture(scope="session")
def default_folder():
    """Folder of the default model, fetched and converted on first use."""
    from llmcourse.model.hub import model_folder

    return model_folder()


@pytest.fixture(scope="session")
def model():
    """The default model, float32 on the CPU; never change its weights."""
    from llmcourse.model.load import load_model

    return load_model(device="cpu", dtype="float32")


@pytest.fixture(scope="session")
def tokenizer():
    """The default model's tokenizer."""
    from llmcourse.model.load import load_tokenizer

    return load_tokenizer()


@pytest.fixture(scope="session")
def hf_default_model():
    """The default model as transformers itself reads it from the GGUF (about half a minute); float32, eval mode."""
    import torch
    from transformers import AutoModelForCausalLM

    from llmcourse.model.download import default_gguf

    file = default_gguf()
    return AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, torch_dtype=torch.float32).eval()
