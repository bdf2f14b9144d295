"""docs/design.md lists the files that a token meets, in order. Oracle: Python's own record of which file was entered when."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from llmcourse import Engine, SamplingParams

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "llmcourse"


def listed():
    """The files of the paragraph that follows "To follow it through the code", as paths below llmcourse/."""
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    return re.findall(r"`([\w/]+\.py)`", text.split("To follow it through the code", 1)[1].split("\n\n", 1)[0])


def entered(work):
    """The files of the package in the order in which `work()` first calls one of their functions."""
    files: dict[str, None] = {}

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>" and PACKAGE in path.parents:
            files[path.relative_to(PACKAGE).as_posix()] = None

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return list(files)


def test_the_reading_path_lists_the_files_that_a_token_meets_in_order(model, tokenizer):
    engine = Engine(model, tokenizer=tokenizer)

    def one_token():
        params = SamplingParams(max_tokens=1, temperature=0.8, top_p=0.9, seed=1)
        return list(engine.stream("The capital of France is", params))

    assert entered(one_token) == listed()
