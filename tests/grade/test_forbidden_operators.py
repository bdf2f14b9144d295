"""Detours to a forbidden operator of PyTorch, graded. Oracle: the lab forbids it, so each is worth nothing."""

from __future__ import annotations

import pytest

from llmcourse.grade.options import Options
from llmcourse.grade.run import grade
from tests.grade.answers import notebook

HEAD = "import torch, functools\nfrom torch.nn.functional import scaled_dot_product_attention as fast\n"
BODY = "def scores(q, k):\n    eye = torch.eye(len(k), dtype=k.dtype)\n    w = {}\n    return w - w + torch.log(w)\n"
DETOURS = {
    "map": "next(map(fast, [q], [k], [eye]))",
    "partial": "functools.partial(fast, q)(k, eye)",
    "aten": "torch.ops.aten.scaled_dot_product_attention(q, k, eye)",
}


@pytest.fixture(scope="module")
def results(small_course, namespaces, tmp_path_factory):
    folder = tmp_path_factory.mktemp("detours")
    for name, call in DETOURS.items():
        text = notebook(scores=HEAD + BODY.format(call), twice="", Bag="")
        (folder / f"{name}.ipynb").write_text(text)
    (folder / "honest.ipynb").write_text(notebook(
        scores="import torch\ntorch.set_default_dtype(torch.float64)\ndef scores(q, k):\n"
               "    return torch.softmax(q @ k.T * q.shape[-1] ** -0.5, -1)",
        twice="", Bag=""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCOURSE_ROOT", str(small_course.root))
        run = grade(Options((folder,), tmp_path_factory.mktemp("graded"), "02", seed=3))
    return {one["submission"]: one for one in run.results}


@pytest.mark.parametrize("name", DETOURS)
def test_a_detour_to_a_forbidden_operator_earns_nothing_and_is_named(results, name):
    found = results[name]
    assert (found["status"], found["score"]) == ("problems", 0)
    assert "may not call torch.nn.functional.scaled_dot_product_attention" in found["reason"]


def test_elementary_operations_earn_everything_whatever_the_notebooks_default_number_is(results):
    assert (results["honest"]["status"], results["honest"]["score"]) == ("ok", results["honest"]["max"])
