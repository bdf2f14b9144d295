"""Cold workers, which every system has, against warm ones. Oracle: each other."""

from __future__ import annotations

import sys

import pytest

from llmcourse.grade.options import Options
from llmcourse.grade.run import grade
from tests.grade.answers import CORRECT, notebook

HANGS = "def twice(n):\n    while True: pass"
DIES = "import os\nclass Bag:\n    def __init__(self):\n        os._exit(3)"


def told(graded) -> list:
    return [
        (r["submission"], r["status"], [(t["id"], t["reason"], t["detail"]) for t in r["tests"]])
        for r in graded.results
    ]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere every worker is cold")
def test_cold_workers_give_the_same_results_as_warm_ones(in_small_course, tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "ana.ipynb").write_text(notebook(scores=CORRECT["scores"].replace("-0.5", "-0.4")))
    (folder / "ben.ipynb").write_text(notebook(twice=HANGS, Bag=DIES))
    options = dict(lesson="01", seed=3, time_factor=0.4, isolation="process")
    warm = grade(Options((folder,), tmp_path / "warm", **options))
    cold = grade(Options((folder,), tmp_path / "cold", warm=False, **options))
    assert told(warm) == told(cold)
    assert {test["reason"] for test in cold.results[1]["tests"]} == {"timeout", "ok", "process died"}
