"""Declaring and finding lessons. Files of probes are written into a temporary folder."""

from __future__ import annotations

import itertools

import pytest

from llmcourse.checks import LESSONS, lesson, load_lesson_file, load_wrong
from llmcourse.errors import AuthoringError, UnknownLesson

HEAD = "from llmcourse.checks import edited, exercise, probe, wrong\nexercise('f', hints=('a', 'b', 'c'))\n"
_fresh = itertools.count()


def declared(tmp_path, body: str):
    file = tmp_path / f"probes{next(_fresh)}.py"
    file.write_text(HEAD + body)
    return load_lesson_file(file, "01", "tokenizer")


def test_probes_belong_to_their_lesson_and_keep_their_order(tmp_path):
    found = declared(tmp_path, "@probe('f', hint='h', points=2)\ndef b(answer, rng): return 1\n"
                               "@probe('f', hint='h', hidden=True)\ndef a(answer, rng): return 1\n")
    assert [p.id for p in found.probes] == ["01.f/b", "01.f/a"]
    assert [p.name for p in found.of("f", hidden=False)] == ["b"]
    assert (found.points(), found.points(hidden=True)) == (3, 1)


@pytest.mark.parametrize("body, said", [
    ("@probe('g', hint='h')\ndef a(answer, rng): return 1\n", "'g'"),
    ("@probe('f', hint='')\ndef a(answer, rng): return 1\n", "needs a hint"),
    ("@probe('f', hint='h', points=0)\ndef a(answer, rng): return 1\n", "more than 0 points"),
    ("@probe('f', hint='h')\ndef a(answer, rng): return 1\n@probe('f', hint='h')\ndef a(answer, rng): return 2\n", "two probes"),
    ("exercise('g', hints=('only one',))\n", "three hints"),
])
def test_a_malformed_declaration_is_an_error_that_names_it(tmp_path, body, said):
    with pytest.raises(AuthoringError, match=said):
        declared(tmp_path, body)


def test_private_probes_are_added_as_hidden_ones(tmp_path):
    public = declared(tmp_path, "@probe('f', hint='h')\ndef a(answer, rng): return 1\n")
    private = declared(tmp_path, "@probe('f', hint='h')\ndef z(answer, rng): return 1\n")
    both = public.with_probes(private.probes)
    assert [(p.id, p.hidden) for p in both.probes] == [("01.f/a", False), ("01.f/z", True)]


def test_private_probes_may_not_replace_public_ones(tmp_path):
    public = declared(tmp_path, "@probe('f', hint='h')\ndef a(answer, rng): return 1\n")
    with pytest.raises(AuthoringError, match="another name"):
        public.with_probes(public.probes)


def test_an_exercise_of_another_lesson_is_unknown(tmp_path):
    with pytest.raises(UnknownLesson, match="it has: f"):
        declared(tmp_path, "").of("g")


@pytest.mark.parametrize("number", ["18", "99", "xx", ""])
def test_a_lesson_that_the_course_lacks_is_an_error_with_the_range(number):
    with pytest.raises(UnknownLesson, match="00 to 17"):
        lesson(number)


def test_the_course_has_eighteen_lessons_in_order():
    assert list(LESSONS) == [f"{i:02}" for i in range(18)]


def test_a_wrong_answer_needs_a_sentence_about_what_it_does_wrong(tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text(HEAD + "@wrong('f', says='x')\ndef g(x): return x\n")
    with pytest.raises(AuthoringError, match="docstring"):
        load_wrong(file)


def test_an_edit_must_find_its_text_once(tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text(HEAD + "edited('f', 'twice', old='1', new='2', says='x', why='It is two.')\n")
    one, = load_wrong(file)
    assert one.build("def f(): return 1", {})() == 2
    with pytest.raises(AuthoringError, match="2 times"):
        one.build("def f(): return 1 + 1", {})
